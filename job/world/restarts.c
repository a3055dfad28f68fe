/* A count against its limit, and one sentence. */
#include "job/world/restarts.h"

#include "base/text.h"

enum restarts restarts_of(uint64_t done, uint64_t max)
{
        return done < max ? RESTARTS_LEFT : max > 0 ? RESTARTS_USED_UP : RESTARTS_NONE;
}

struct restarts_words restarts_words(uint64_t done, uint64_t max, bool checkpoints)
{
        struct restarts_words words;

        (void) text_format(words.text, sizeof(words.text), "restart %llu of %llu, from %s",
                           (unsigned long long) done, (unsigned long long) max,
                           checkpoints ? "the last valid checkpoint" : "the beginning");
        return words;
}
