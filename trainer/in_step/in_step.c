/* One word a step; what is heard is acted on by all. */
#include "trainer/in_step/in_step.h"

#include <string.h>

#include "base/cleanup.h"
#include "trainer/in_step/patience.h"

static bool takes_shares(const struct training *t)
{
        const struct train_options *o = t->options;

        return t->world.size > 1 && strategy_find(o->strategy)->live &&
               strcmp(o->distribute, "shared") == 0 && o->exchange <= 0;
}

void in_step_open(struct in_step *s, struct training *t)
{
        *s = (struct in_step){ 0 };
        s->recuts = recut_open(&s->recut, &t->world, takes_shares(t) ? t->options->live_shares : NULL);
        stop_open(&s->stop, t);
        s->exchanges = t->world.parallel && (s->stop.listens || s->recuts);
        t->record.cuts = s->recuts ? t->sampler : NULL;
}

/* Each rank makes room before any of them cuts anew. Without room on one of them all stay with what they
 * have. */
static int take_shares(struct in_step *s, struct training *t, struct err *err)
{
        struct live_shares shares;
        /* the next step's samples are there: let them be used */
        int r = recut_take(&s->recut, &t->world, t->step + 1, &shares, err);

        if (r < 0)
                return r;
        r = world_agree(&t->world, training_make_room(t, shares.of[t->world.rank], err), err);
        if (r < 0 && t->world.rank == 0)
                (void) fprintf(stderr,
                               "remuda-train: new shares for step %llu: %s; shares stay as they are\n",
                               (unsigned long long) shares.step, err->msg);
        r = r < 0 ? 0 : world_agree(&t->world, training_recut(t, shares.step, shares.of, err), err);
        live_shares_free(&shares);
        return r;
}

int in_step_next(struct in_step *s, struct training *t, struct err *err)
{
        int r = 0;

        if (t->step >= t->last_step)
                return 0;
        if (!s->exchanges) {
                t->stopped = stop_requested(&s->stop);
                return 0;
        }
        word_end(&s->word);
        t->stopped = s->word.heard[WORD_STOP] > 0;
        if (t->stopped)
                return 0;
        if (s->word.heard[WORD_SHARES] > s->recut.taken)
                r = take_shares(s, t, err);
        t->patient = s->word.heard[WORD_WAITED] >= PATIENCE_WORTH_USEC;
        s->word.said[WORD_WAITED] = t->waited_usec;
        s->word.said[WORD_STOP] = stop_requested(&s->stop);
        if (s->recuts)
                s->word.said[WORD_SHARES] =
                        recut_look(&s->recut, &t->world, (size_t) t->shares.first_worker, t->shares.batch);
        word_begin(&s->word);
        return r;
}

void in_step_close(struct in_step *s)
{
        word_end(&s->word);
        recut_close(&s->recut);
        stop_close(&s->stop);
}
