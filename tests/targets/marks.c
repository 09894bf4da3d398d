/*
 * Uses include/sonde.h, linked with nothing of it: work before counting is switched on, 100 blocks
 * while it is off, 50 while it is on. Prints what the calls said.
 */
#include "sonde.h"
#include "work.h"

#include <stdlib.h>
#include <sys/prctl.h>

static void *volatile keep;

KEPT void while_off(void)
{
    for (int i = 0; i < 100; i++)
        keep = malloc(1000);
}

KEPT void while_on(void)
{
    for (int i = 0; i < 50; i++)
        keep = malloc(1000);
}

int main(void)
{
    char name[16] = "";
    int off = SONDE_STOP();
    while_off();
    int on = SONDE_START();
    while_on();
    int snapshot = SONDE_SNAPSHOT();
    SONDE_THREAD_NAME("first");
    prctl(PR_GET_NAME, name);
    printf("%d %d %d %d %s\n", SONDE_IS_PROFILED(), off, on, snapshot, name);
    return 0;
}
