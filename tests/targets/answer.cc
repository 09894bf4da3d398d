/* The library that churn loads: throws and catches inside itself. */
extern "C" int answer(int n);

__attribute__((noinline)) static void raise(int n)
{
    throw n;
}

extern "C" int answer(int n)
{
    try {
        raise(n);
    } catch (int caught) {
        return caught + 1;
    }
    return 0;
}
