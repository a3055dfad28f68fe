/* A count against its limit, a pause, and one sentence. */
#include "job/world/restarts.h"

#include <string.h>

#include "base/text.h"

enum restarts restarts_of(uint64_t done, uint64_t max)
{
        return done < max ? RESTARTS_LEFT : max > 0 ? RESTARTS_USED_UP : RESTARTS_NONE;
}

#define SECOND_USEC UINT64_C(1000000)
#define QUICK_USEC  (60 * SECOND_USEC)
#define QUICK_FREE  3
#define PAUSE_LIMIT 60

uint64_t restarts_pause(struct restarts_pace *pace, uint64_t now_usec)
{
        unsigned seconds = 0;

        if (pace->again_usec == 0 || now_usec > pace->again_usec + QUICK_USEC)
                pace->quick = 0;
        if (pace->quick >= QUICK_FREE)
                seconds = pace->quick - QUICK_FREE < 6 ? 1u << (pace->quick - QUICK_FREE) : PAUSE_LIMIT;
        pace->quick++;
        pace->again_usec = now_usec + seconds * SECOND_USEC;
        return seconds * SECOND_USEC;
}

struct restarts_words restarts_words(uint64_t done, uint64_t max, bool checkpoints, uint64_t pause_usec)
{
        struct restarts_words words;

        (void) text_format(words.text, sizeof(words.text), "restart %llu of %llu, from %s",
                           (unsigned long long) done, (unsigned long long) max,
                           checkpoints ? "the last valid checkpoint" : "the beginning");
        if (pause_usec > 0)
                (void) text_format(words.text + strlen(words.text), sizeof(words.text) - strlen(words.text),
                                   ", in %llu s", (unsigned long long) (pause_usec / SECOND_USEC));
        return words;
}
