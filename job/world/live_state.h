/* Live state: what is known of new shares for the world at hand while it runs; live.h owns it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live_state {
        bool under_way;                 /* told, and not all say that they have taken them; until they do */
        uint64_t step;                  /* that the ranks were told last; 0 = never */
        bool judged, calm;              /* what they brought is known; they have stood for long */
        bool true_so_far;               /* and it was seen that no rank's word is behind longer steps */
        bool fitted;                    /* the ranks' lines say what is seen with them */
        bool off;                       /* none are told any more */
        bool mute_said;                 /* that a rank's speed is not known, or its shares cannot change */
        size_t looked;                  /* paces of every worker that were looked at */
        size_t patience;                /* how long a look has to be at least: 4, 16, 64 paces */
        unsigned vain;                  /* how often shares were changed for less than that shows */
        double wall_ms, unexplained_ms; /* of a step before them: in all; in which no rank computes */
        double step_ms, promised_ms;    /* the slowest rank's step before; with them */
        uint64_t count;                 /* how often new shares were taken */
};
