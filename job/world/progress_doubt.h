/* Progress doubt: what of a rank's word cannot be. */
#pragma once

/* What a rank says and cannot be; live_words.c has the words. Its word on its speed then counts no more. */
enum progress_doubt {
        PROGRESS_BELIEVED,
        PROGRESS_NO_LINE,   /* no JSON object: that line alone is not read */
        PROGRESS_STEP_ANEW, /* fewer steps than before: it is told no new shares; the rest stands */
        PROGRESS_STEP,
        PROGRESS_SAMPLES,   /* negative, or fewer than before */
        PROGRESS_BUSY,      /* the same */
        PROGRESS_BUSY_LONG, /* longer than the world */
        PROGRESS_RATE,      /* samples_per_s: negative, or by which it computed longer than the world */
        PROGRESS_SHARE,     /* more samples a step than its share */
        PROGRESS_FAST,      /* more samples a second than any chip */
        PROGRESS_UNTRUE,    /* with its larger share the steps take longer, and nobody says why */
        PROGRESS_DOUBTS
};

/* Beyond these no figure is taken: what is worked out from it would not be finite. */
#define PROGRESS_RATE_MIN    1e-9 /* samples a second */
#define PROGRESS_RATE_MAX    1e12
#define PROGRESS_SECONDS_MAX 1e9
#define PROGRESS_LOSS_MAX    1e30
#define PROGRESS_TOTAL_MAX   1e15 /* steps, samples */
