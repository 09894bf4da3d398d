/* make_recording FILE: the sample profile as a recording, for tests of the command. */
#include <stdio.h>

#include "recording/save.h"
#include "sample.h"

int main(int argc, char **argv)
{
    struct profile p;
    struct error err = {0};
    struct writer *w;
    if (argc != 2)
        return 2;
    sample_fill(&p, true);
    int rc = writer_new(argv[1], true, &w, &err);
    if (!rc) {
        rc = recording_save(&p, w, &err);
        int closed = writer_free(w, !rc, p.end, rc ? NULL : &err);
        rc = rc ? rc : closed;
    }
    if (rc)
        fprintf(stderr, "%s\n", err.text);
    profile_release(&p);
    return rc ? 1 : 0;
}
