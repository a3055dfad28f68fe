/* Dealings: how often, and to whom, samples were dealt that workers keep (trainer/data/owned.h).
 *
 * Which sample is where follows from the seed, the step and these: a run that goes on with other workers
 * deals anew from its first step on, and whoever goes on from there has to know both. A line each:
 *
 *         0 0.25 blocks shuffled 20,12,8         from step 0 on, three workers that pass a quarter on
 *         107 0.25 blocks shuffled 24,16         from step 107 on two
 *
 * Pure but for the heap. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

#define DEALINGS_MAX         1000
#define DEALINGS_WORKERS_MAX 65536
#define DEALINGS_TEXT_MAX    ((size_t) 16 << 20)

struct dealing {
        uint64_t from; /* that step on */
        double exchange;
        bool round_robin, as_it_lies;
        size_t workers, *shares; /* owned */
};

struct dealings {
        struct dealing *list;     /* by rising steps, the first from 0 on; the last is in force */
        size_t count, text_bytes; /* as they are printed */
};

void dealings_free(struct dealings *d);

/* dealings_add() - from `dealing->from` on; one that would begin with the same step, and with it nothing was
 * done, gives way; one that is as the last is not noted.
 * @dealing: copied. Return: 0, -ENOMEM, or -E2BIG: there are DEALINGS_MAX already, more than
 * DEALINGS_WORKERS_MAX workers, or more than DEALINGS_TEXT_MAX bytes as they are printed: nobody could read
 * them again. */
int dealings_add(struct dealings *d, const struct dealing *dealing, struct err *err);

void dealings_print(const struct dealings *d, struct text *out);

/* dealings_parse() - what was printed; the shares of each add up to `batch`. Return: 0, -EINVAL, -ENOMEM. */
int dealings_parse(const char *text, size_t batch, struct dealings *ret, struct err *err);
