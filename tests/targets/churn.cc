/*
 * T21. churn LIBRARY [COUNT]: loads and unloads a library over and over while another thread throws
 * and catches; both take the loader's lock, which whoever samples them must not.
 */
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <stdexcept>
#include <thread>

static std::atomic<bool> stop{false};
static std::atomic<unsigned long> caught{0};

__attribute__((noinline)) static void throw_deep(int depth)
{
    if (depth == 0)
        throw std::runtime_error("thrown");
    throw_deep(depth - 1);
    caught.fetch_add(0); /* keeps the call from becoming a jump */
}

static void throw_on()
{
    do { /* at least once, however late it comes to run */
        try {
            throw_deep(10);
        } catch (const std::runtime_error &) {
            caught++;
        }
    } while (!stop);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 99;
    unsigned long count = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 2000, good = 0;
    std::thread thrower(throw_on);
    for (unsigned long i = 0; i < count; i++) {
        void *library = dlopen(argv[1], RTLD_NOW);
        if (!library)
            continue;
        auto answer = reinterpret_cast<int (*)(int)>(dlsym(library, "answer"));
        good += answer && answer(41) == 42;
        dlclose(library);
    }
    stop = true;
    thrower.join();
    std::printf("%lu of %lu, %s\n", good, count, caught > 0 ? "caught" : "never thrown");
    return 0;
}
