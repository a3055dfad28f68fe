/* Near: the names that a person may have meant, who wrote one that is not known.
 *
 *      struct near near = { .word = "H1OO" };
 *      near_consider(&near, "H100-SXM5-80GB");   for each name that there is
 *      near_say(&near, text, sizeof(text));      "; did you mean H100-SXM5-80GB?"
 *
 * A name is near that at most two letters, changed, added or taken away, turn into the word, whatever the
 * case (Levenshtein). Pure; a name costs O(its letters x the word's). */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define NEAR_NAMES     3
#define NEAR_MAX_BYTES 64 /* of words that are compared */

struct near {
        const char *word;
        bool whole;                    /* else the beginning of a name may be near, too: H1OO, H100-SXM5 */
        const char *names[NEAR_NAMES]; /* the nearest, all equally near, each once; borrowed */
        size_t count;
        unsigned edits; /* how near they are */
};

void near_consider(struct near *near, const char *name);

/* near_say() - @ret: "" where nothing is near. Return: @ret */
const char *near_say(const struct near *near, char *ret, size_t size);
