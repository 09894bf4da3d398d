/*
 * T9. closefds: a child closes every descriptor it did not open, as daemons do, then opens a pipe
 * that gets the old numbers. Nobody else may write to it.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "work.h"

#define PIPES 16

static int child(void)
{
    int ends[PIPES][2], strange = 0;
    closefrom(3);
    for (int i = 0; i < PIPES; i++) {
        must(pipe(ends[i]) == 0, "pipe");
        fcntl(ends[i][0], F_SETFL, O_NONBLOCK);
    }
    must(ends[0][0] == 3, "descriptor 3 is not free");
    for (int i = 0; i < 100; i++)
        free(memset(malloc(1000), (int)work(1, 1000), 1000));
    for (int i = 0; i < PIPES; i++) {
        char byte;
        strange += read(ends[i][0], &byte, 1) != -1;
    }
    return strange;
}

int main(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0)
        _exit(child());
    must(pid > 0 && waitpid(pid, &status, 0) == pid, "fork");
    printf("foreign bytes in %d pipes\n", WEXITSTATUS(status));
    return status != 0;
}
