/* The engine with hands that only note what they are asked for: what follows from which end of mpirun, from a
 * signal, from a hand that fails; and that nobody leaves before mpirun is gone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "io/clock.h"
#include "job/launcher/engine.h"

#define SECOND 1000000ULL

struct play {
        struct engine engine;
        struct world world;
        int codes[3]; /* of each world's mpirun; -1: it runs until it is killed */
        unsigned worlds;
        bool refuse; /* the next world cannot be cut */
        char said[512];
};

static void say(struct play *play, const char *word)
{
        size_t length = strlen(play->said);

        (void) snprintf(play->said + length, sizeof(play->said) - length, "%s%s", length == 0 ? "" : " ",
                        word);
}

static void on_event(void *userdata, const char *reason, const char *message)
{
        (void) message;
        say(userdata, reason);
}

static void assign(void *userdata)
{
        struct play *play = userdata;

        if (play->refuse)
                engine_fail(&play->engine, 2, "PlanRefused", "there is no plan");
        else
                assert_int_equal(engine_lay_out(&play->engine, 1, NULL), 0);
}

static void start(void *userdata)
{
        struct play *play = userdata;
        int code = play->codes[play->worlds++];

        say(play, "start");
        play->engine.mpirun = fork();
        if (play->engine.mpirun == 0) {
                sigset_t none;

                (void) sigemptyset(&none);
                (void) sigprocmask(SIG_SETMASK, &none, NULL);
                while (code < 0)
                        (void) pause();
                _exit(code);
        }
}

static void terminate(void *userdata)
{
        struct play *play = userdata;

        say(play, "terminate");
        (void) kill(play->engine.mpirun, SIGTERM);
}

static void adopt(void *userdata, bool anew)
{
        say(userdata, anew ? "adopt-anew" : "adopt");
}

static void stop(void *userdata)
{
        say(userdata, "stop");
}

static void ended(void *userdata, int exit_code)
{
        struct play *play = userdata;
        char word[32];

        (void) text_format(word, sizeof(word), "ended-%d", exit_code);
        say(play, word);
        if (play->engine.hands->assign == NULL)
                play->engine.ending = true;
}

static void end(void *userdata, const struct verdict *v)
{
        say(userdata, v->reason);
        say(userdata, "end");
}

static const struct engine_hands hands = { .tick_usec = 20000,
                                           .event = on_event,
                                           .assign = assign,
                                           .start = start,
                                           .terminate = terminate,
                                           .adopt = adopt,
                                           .stop = stop,
                                           .ended = ended,
                                           .end = end },
                                 unjudged = { .tick_usec = 20000, .ended = ended };

static void open_play(struct play *play, const struct engine_hands *with, uint64_t restarts)
{
        const struct world_rules rules = { .kind = WORLD_CHIPS,
                                           .restart_max = restarts,
                                           .hang_usec = 60 * SECOND,
                                           .grace_usec = SECOND,
                                           .global_batch = 1,
                                           .log = "its log says why" };

        assert_int_equal(world_init(&play->world, &rules, 1, clock_monotonic_usec(), NULL), 0);
        play->world.places[0] =
                (struct world_place){ .name = "chip", .chips = 1, .there = true, .used = true };
        play->world.places[0].stand_in = WORLD_NOBODY;
        play->engine.hands = with;
        play->engine.userdata = play;
        play->engine.world = &play->world;
        assert_int_equal(engine_open(&play->engine, NULL), 0);
}

static void close_play(struct play *play)
{
        assert_int_equal(play->engine.mpirun, 0);
        engine_close(&play->engine);
        world_free(&play->world);
}

static void each_end_has_its_consequences(void **state)
{
        static const struct {
                int codes[3];
                uint64_t restarts;
                bool refuse;
                const char *said;
                int exit_code;
        } rows[] = {
                { { 0 }, 0, false, "start ended-0 Completed end", 0 },
                { { 7 }, 0, false, "start ended-7 WorldFailed end", 7 },
                { { 7, 0 },
                  1,
                  false,
                  "start ended-7 WorldFailed adopt stop Restarting start ended-0 Completed end",
                  0 },
                { { 127 }, 3, false, "start ended-127 WorldFailed end", 127 },
                { { 0 }, 0, true, "PlanRefused end", 2 },
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct play play = { .refuse = rows[i].refuse };

                memcpy(play.codes, rows[i].codes, sizeof(play.codes));
                open_play(&play, &hands, rows[i].restarts);
                assert_int_equal(engine_run(&play.engine), 0);
                assert_string_equal(play.said, rows[i].said);
                assert_int_equal(play.engine.last.exit_code, rows[i].exit_code);
                close_play(&play);
        }
}

static int on_alarm(sd_event_source *source, uint64_t usec, void *userdata)
{
        (void) source;
        (void) usec;
        return kill(getpid(), *(const int *) userdata);
}

static void a_signal_gives_the_ranks_their_time(void **state)
{
        static const int signals[] = { SIGTERM, SIGINT };
        static const int codes[] = { 143, 130 };

        (void) state;
        for (size_t i = 0; i < 2; i++) {
                struct play play = { .codes = { -1 } };
                sd_event_source *alarm = NULL;
                int number = signals[i];

                open_play(&play, &hands, 3);
                assert_true(sd_event_add_time_relative(play.engine.loop.event, &alarm, CLOCK_MONOTONIC,
                                                       SECOND / 10, 0, on_alarm, &number) >= 0);
                assert_int_equal(engine_run(&play.engine), 0);
                assert_string_equal(play.said, "start Cancelling terminate ended-143 Interrupted end");
                assert_int_equal(play.engine.last.exit_code, codes[i]);
                assert_int_equal(play.engine.last.end, VERDICT_CANCELLED);
                (void) sd_event_source_disable_unref(alarm);
                close_play(&play);
        }
}

static int fail_it(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct play *play = userdata;

        (void) source;
        (void) usec;
        engine_fail(&play->engine, 1, "SubtaskRefused", "of a group");
        engine_fail(&play->engine, 9, "Again", "nobody hears it");
        return 0;
}

static void nobody_leaves_before_mpirun_is_gone(void **state)
{
        struct play play = { .codes = { -1 } };
        sd_event_source *timer = NULL;

        (void) state;
        open_play(&play, &hands, 3);
        assert_true(sd_event_add_time_relative(play.engine.loop.event, &timer, CLOCK_MONOTONIC, SECOND / 10,
                                               0, fail_it, &play) >= 0);
        assert_int_equal(engine_run(&play.engine), 0);
        assert_string_equal(play.said, "start SubtaskRefused end ended-137");
        assert_int_equal(play.engine.last.exit_code, 1);
        (void) sd_event_source_disable_unref(timer);
        close_play(&play);
}

static void a_world_that_nobody_judges_just_ends(void **state)
{
        struct play play = { .codes = { 7 } };

        (void) state;
        open_play(&play, &unjudged, 3);
        start(&play);
        assert_int_equal(engine_run(&play.engine), 0);
        assert_string_equal(play.said, "start ended-7");
        close_play(&play);
}

/* Whatever a program says, its state is JSON, and has all ranks. */
static void what_programs_say_is_written_as_numbers(void **state)
{
        static const struct {
                double samples_per_s, busy_seconds, loss, accuracy;
                bool believed;
        } rows[] = {
                { 100, 1, 0.5, 0.9, true },
                { 0, 1e-300, 1e308, 1e308, false },
                { 0, 1e308, -1e308, -1e308, false },
                { 1e308, 0, NAN, NAN, false },
                { 1e-308, 0, HUGE_VAL, HUGE_VAL, false },
                { HUGE_VAL, HUGE_VAL, 0, 0, true }, /* as if nothing were said */
        };

        (void) state;
        for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
                struct play play = { .refuse = false };
                json_t *said, *ranks, *loss;

                open_play(&play, &hands, 0);
                assert_int_equal(engine_lay_out(&play.engine, 2, NULL), 0);
                play.world.phase = WORLD_RUNNING;
                play.world.ranks[0].batch = play.world.ranks[1].batch = 1 << 24;
                for (uint32_t line = 1; line < 20; line++) {
                        Rendezvous__RankSeen seen = RENDEZVOUS__RANK_SEEN__INIT;

                        seen.rank = 1;
                        seen.lines = line;
                        seen.step = line;
                        seen.samples = 100 * (int64_t) line;
                        seen.samples_per_s = rows[i].samples_per_s;
                        seen.busy_seconds = rows[i].busy_seconds * line;
                        seen.loss = rows[i].loss;
                        seen.accuracy = rows[i].accuracy;
                        seen.has_accuracy = true;
                        engine_take(&play.engine, &seen);
                }
                said = engine_state(&play.engine, "j", 1, 0);
                ranks = json_object_get(said, "ranks");
                assert_int_equal(json_array_size(ranks), 2);
                assert_true(json_number_value(json_object_get(json_array_get(ranks, 1), "samples_per_s")) <=
                            PROGRESS_RATE_MAX);
                assert_int_equal(progress_believed(&play.world.seen[1]), rows[i].believed);
                loss = json_object_get(said, "loss"); /* of the rank that says one; nobody's is none */
                assert_int_equal(loss != NULL, fabs(rows[i].loss) == 0.5);
                assert_true(loss == NULL || json_number_value(loss) == 0.5);
                json_decref(said);
                close_play(&play);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_end_has_its_consequences),
                cmocka_unit_test(a_signal_gives_the_ranks_their_time),
                cmocka_unit_test(nobody_leaves_before_mpirun_is_gone),
                cmocka_unit_test(a_world_that_nobody_judges_just_ends),
                cmocka_unit_test(what_programs_say_is_written_as_numbers),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
