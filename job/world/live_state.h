/* Live state: what is known of new shares for the world at hand while it runs; live.h owns it. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct live_state_step {    /* a usual one */
        double ms, idle_ms; /* in all; in which no rank computes */
};

struct live_state {
        bool under_way;                /* told, and not all say that they have taken them; until they do */
        uint64_t step;                 /* that the ranks were told last; 0 = never */
        bool judged, calm;             /* what they brought is known; they have stood for long */
        bool true_so_far;              /* and it was seen that no rank's word is behind longer steps */
        unsigned fitted;               /* paces by which the ranks' lines say what is seen with them */
        bool off;                      /* none are told any more */
        bool mute_said;                /* that a rank's speed is not known, or its shares cannot change */
        size_t looked;                 /* paces of every worker that were looked at */
        size_t patience;               /* how long a look has to be at least: 0, 1, 2 = 4, 16, 64 paces */
        unsigned vain;                 /* how often shares were changed for less than that shows */
        struct live_state_step before; /* with the shares before the last */
        bool suspected;                /* a rank's word: the shares of before are tried again */
        size_t suspect;                /* whose */
        struct live_state_step longer; /* with its larger share */
        double step_ms, promised_ms;   /* the slowest rank's step before; with them */
        uint64_t count;                /* how often new shares were taken */
};
