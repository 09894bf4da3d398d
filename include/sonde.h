/*
 * What a program can say to sonde about itself. Nothing has to be linked: where sonde's library is
 * not in the process (it comes by `sonde run`, `sonde attach` or LD_PRELOAD), every call here is a
 * test of a pointer and returns at once.
 *
 *     #include <sonde.h>
 *
 *     SONDE_START();                  counting begins (again), of the part that matters
 *     SONDE_STOP();                   ... and pauses
 *     SONDE_SNAPSHOT();               with HEAPPROFILE: another file of the heap, as it is now
 *     SONDE_THREAD_NAME("reader");    of the calling thread, 15 bytes at most
 *
 * Each gives 0 when something was done, and -1 where nobody listens. With CPUPROFILE every start
 * after the first stop begins a new file. All may be called from any thread, not from signal
 * handlers.
 */
#ifndef SONDE_H
#define SONDE_H

#ifdef __cplusplus
extern "C" {
#endif

#define SONDE_WEAK __attribute__((weak, visibility("default")))

int sonde_is_profiled(void) SONDE_WEAK;
int sonde_start(void) SONDE_WEAK;
int sonde_stop(void) SONDE_WEAK;
int sonde_snapshot(void) SONDE_WEAK;
void sonde_thread_name(const char *name) SONDE_WEAK;

#define SONDE_IS_PROFILED() (sonde_is_profiled ? sonde_is_profiled() : 0)
#define SONDE_START() (sonde_start ? sonde_start() : -1)
#define SONDE_STOP() (sonde_stop ? sonde_stop() : -1)
#define SONDE_SNAPSHOT() (sonde_snapshot ? sonde_snapshot() : -1)
#define SONDE_THREAD_NAME(name) (sonde_thread_name ? sonde_thread_name(name) : (void)0)

#ifdef __cplusplus
}
#endif

#endif
