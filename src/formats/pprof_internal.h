/*
 * The numbers of pprof's profile.proto, and its conventions as both directions
 * keep them: an event of ours is one column of values, with a column of counts before it.
 *
 *     cpu (ns)           samples/count        cpu/nanoseconds
 *     alloc_space        alloc_objects/count  alloc_space/bytes
 *     delay (ns)         contentions/count    delay/nanoseconds
 *     any other          NAME_samples/count   NAME/unit
 *
 * The column of counts is left out where it would repeat the values.
 */
#ifndef SONDE_PPROF_INTERNAL_H
#define SONDE_PPROF_INTERNAL_H

#include "formats/format.h"

/* The name of the one frame of a sample without any. */
#define PPROF_NOWHERE "[unknown]"

enum pprof_profile {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_DROP_FRAMES = 7,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_PERIOD_TYPE = 11,
    PROFILE_PERIOD = 12,
    PROFILE_COMMENT = 13,
    PROFILE_DEFAULT_TYPE = 14,
};

enum pprof_value_type { TYPE_NAME = 1, TYPE_UNIT = 2 };

enum pprof_sample { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };

enum pprof_label { LABEL_KEY = 1, LABEL_TEXT = 2, LABEL_NUMBER = 3, LABEL_UNIT = 4 };

enum pprof_mapping {
    MAPPING_ID = 1,
    MAPPING_START = 2,
    MAPPING_LIMIT = 3,
    MAPPING_OFFSET = 4,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    MAPPING_HAS_FILES = 8,
    MAPPING_HAS_LINES = 9,
    MAPPING_HAS_INLINED = 10,
};

enum pprof_location {
    LOCATION_ID = 1,
    LOCATION_MAPPING = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4
};

enum pprof_line { LINE_FUNCTION = 1, LINE_NUMBER = 2 };

enum pprof_function {
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILE = 4,
    FUNCTION_START_LINE = 5,
};

/* See struct format; pprof_read.c holds the vtable. */
int pprof_write(const struct profile *p, const struct export_options *options, struct sink *out,
                struct error *err);

#endif
