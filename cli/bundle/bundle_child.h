/* Bundle child: another command, `remuda` itself or a program of the system, as a source: what it prints, for
 * so long as it may take. One that hangs (a driver that does not come back) is killed and costs nobody else
 * time: several run at once. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/text.h"

#define BUNDLE_CHILD_WORDS_MAX 48

struct bundle_child {
        pid_t pid;          /* 0 = it could not be started, and why says so */
        int output, errors; /* files in memory */
        uint64_t until_usec;
        char why[200];
};

/* bundle_child_start() - @words: argv, NULL-terminated; "remuda" is this program. It may print
 * @max_bytes. bundle_child_end() in any case. */
void bundle_child_start(struct bundle_child *child, const char *const *words, size_t max_bytes);

/* bundle_child_end() - wait until it ends or its BUNDLE_SOURCE_USEC since the start are over.
 * @output: what it printed on standard output. Return: its exit code (128 and the signal's number, of one
 * that it ended by); a negative errno with *err: it was not started (-ENOENT), took too long (-ETIMEDOUT).
 * @errors: its standard error, one line of it */
int bundle_child_end(struct bundle_child *child, struct text *output, char *errors, size_t errors_bytes,
                     struct err *err);
