/* A client of one's own in C: counts added to a job of `sonde serve`. Link with -lcurl. */
#include "sonde_client.h"

int main(void)
{
    struct sonde_client *c = sonde_client_open(NULL, NULL);
    int job = c ? sonde_client_create(c, 0, "an example in C") : -1;
    static const int misses[] = {10, 7};
    int failed = job < 0;
    for (int i = 0; !failed && i < 2; i++)
        failed = sonde_client_count(c, "app", "parse", "cache-misses", misses[i]) < 0 ||
                 sonde_client_send(c, job) < 0;
    if (failed)
        fprintf(stderr, "%s\n", c ? sonde_client_error(c) : "no memory");
    else
        printf("added to job %d\n", job);
    sonde_client_close(c);
    return failed;
}
