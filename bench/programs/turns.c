/* Two processes that take turns: a byte there and back through pipes, so that all is switching. */
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TURNS 60000

static void play(int in, int out)
{
    char byte = 0;
    while (read(in, &byte, 1) == 1 && write(out, &byte, 1) == 1)
        ;
}

static double cpu(int who)
{
    struct rusage u;
    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(void)
{
    int there[2], back[2];
    if (pipe(there) || pipe(back))
        return 1;
    if (fork() == 0) {
        close(there[1]);
        play(there[0], back[1]);
        _exit(0);
    }
    char byte = 0;
    for (int i = 0; i < TURNS; i++)
        if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1)
            return 1;
    close(there[1]);
    wait(NULL);
    fprintf(stderr, "cpu %.3f\n", cpu(RUSAGE_SELF) + cpu(RUSAGE_CHILDREN));
    return 0;
}
