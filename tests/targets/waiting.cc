// The library that loading loads: its constructor waits for a thread that allocates in C++'s ways.
#include <new>
#include <thread>

namespace
{
struct alignas(64) wide {
    char bytes[64];
};

struct starts {
    starts()
    {
        std::thread other([] {
            wide *volatile one = new wide;
            delete one;
            wide *volatile many = new wide[3];
            delete[] many;
            int *volatile maybe = new (std::nothrow) int[5];
            delete[] maybe;
        });
        other.join();
    }
} at_start;
} // namespace
