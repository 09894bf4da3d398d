// A program without a library, small and with a bit of everything that debug information says:
// a namespace, a class, a function inlined into another twice, lines of their own.
namespace deep {
struct box {
    int held;
    __attribute__((noinline)) int get(int by) const
    {
        int sum = 0;
        for (int i = 0; i < by; i++)
            sum += held ^ i;
        return sum;
    }
};
} // namespace deep

static inline __attribute__((always_inline)) int twice(int x)
{
    return x * 2;
}

extern "C" int work(int x)
{
    deep::box box = {twice(x)};
    return box.get(3) + twice(x + 1);
}

extern "C" void _start()
{
    work(1);
    for (;;) {
    }
}
