/* Plays the stories of a training job in trouble (test_stories.h) as both callers see them: the verdict is
 * the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "job/launcher/rank_watch.h"
#include "job/run/run_migrate.h"
#include "job/world/test_stories.h"
#include "job/world/verdict.h"

#define RANKS  4
#define LOOK   250000ULL /* between two looks, and of a step */
#define SECOND 1000000ULL

struct play {
        const struct test_stories_story *story;
        struct world world;
        enum world_kind kind;
        uint64_t now;
        bool mute[RANKS], talk[RANKS], spare;
        size_t place_of[RANKS]; /* of the ranks of the last world */
        double slow[RANKS], busy[RANKS];
        int64_t step[RANKS];
        Rendezvous__RankSeen sent[RANKS]; /* as a group tells its manager */
        uint32_t lines[RANKS];
        char said[2048], last[WORLD_TEXT_BYTES + 64]; /* all verdicts; the last sentence */
};

static void fact(struct play *play, struct world_fact what)
{
        world_observe(&play->world, &what, play->now);
}

/* A rank is looked at alike here and in a group, whose message goes over the wire before the manager takes it
 * in. */
static void send_rank(struct play *play, size_t rank)
{
        Rendezvous__RankSeen *sent = &play->sent[rank];
        Rendezvous__Seen seen = RENDEZVOUS__SEEN__INIT;
        CLEANUP(free_p) uint8_t *bytes = NULL;
        const Rendezvous__Seen *received;
        struct pb_arena arena;
        size_t size;

        sent->rank = (uint32_t) rank;
        sent->pid = 1;
        if (play->kind == WORLD_CHIPS) {
                rank_watch_tell(&play->world, sent, &play->lines[rank], play->now);
                return;
        }
        seen.group = (char *) "g1";
        seen.ranks = &sent;
        seen.n_ranks = 1;
        bytes = pb_pack(&seen, &size);
        received = message_read(&arena, &rendezvous__seen__descriptor, bytes, size, NULL);
        assert_non_null(received);
        rank_watch_tell(&play->world, received->ranks[0], &play->lines[rank], play->now);
        pb_arena_free(&arena);
}

static void exit_rank(struct play *play, size_t rank, int code)
{
        play->sent[rank].ended = true;
        play->sent[rank].exit_code = code;
        send_rank(play, rank);
}

static void halt_all(struct play *play)
{
        for (size_t i = 0; i < play->world.place_count; i++)
                fact(play, (struct world_fact){ .kind = WORLD_HALTED, .index = i });
}

/* One host: for each chip that lacks a spare one is looked for, when all has ended. */
static void offer_chips(struct play *play)
{
        for (size_t i = 0; play->kind == WORLD_CHIPS && i < play->world.place_count; i++)
                fact(play, (struct world_fact){ .kind = WORLD_STAND_IN,
                                                .index = i,
                                                .code = play->spare ? 9 : WORLD_NOBODY,
                                                .text = "GPU-9" });
}

static void lay_out(struct play *play)
{
        struct world *world = &play->world;
        size_t count = 0, rank = 0;

        for (size_t i = world->place_count; i-- > 0;) {
                if (play->kind == WORLD_CHIPS && !world->places[i].used)
                        world_drop(world, i);
                else if (world->places[i].used)
                        count += world->places[i].chips;
        }
        assert_int_equal(world_lay_out(world, count, NULL), 0);
        for (size_t i = 0; i < world->place_count; i++)
                for (uint64_t k = 0; world->places[i].used && k < world->places[i].chips; k++) {
                        play->place_of[rank] = i;
                        play->mute[rank] = play->talk[rank] = false;
                        rendezvous__rank_seen__init(&play->sent[rank]);
                        play->lines[rank] = 0;
                        play->step[rank] = -1;
                        play->busy[rank] = 0;
                        world->ranks[rank++] = (struct world_rank){ .place = i, .batch = 64 / count };
                }
        for (size_t i = 0; i < world->place_count; i++)
                fact(play, (struct world_fact){ .kind = WORLD_READY, .index = i });
}

static const char *word_of(const struct verdict *v)
{
        static const char *const losses[] = { "GroupLost", "GroupLeft", "DeviceUnhealthy", "NodeLost" };

        for (size_t i = 0; i < ARRAY_SIZE(losses); i++)
                if (strcmp(v->reason, losses[i]) == 0)
                        return "Lost";
        return v->reason;
}

static void say(struct play *play, const struct verdict *v)
{
        static const char *const ends[] = { "succeeded", "failed", "cancelled" };
        size_t length = strlen(play->said);
        char *to = play->said + length;
        size_t room = sizeof(play->said) - length;

        if (v->message[0] != '\0')
                (void) text_copy(play->last, sizeof(play->last), v->message);
        if (v->kind == VERDICT_ASSIGN || strcmp(v->reason, "Restarting") == 0)
                return;
        if (length > 0) {
                *to++ = ' ';
                room--;
        }
        if (v->kind == VERDICT_SAY)
                (void) text_format(to, room, "%s", word_of(v));
        else if (v->kind == VERDICT_START)
                (void) text_format(to, room, "start");
        else if (v->kind == VERDICT_TERMINATE)
                (void) text_format(to, room, "%s%sterminate", v->reason, v->reason[0] == '\0' ? "" : "/");
        else if (v->kind == VERDICT_MOVE || v->kind == VERDICT_LEAVE_OUT)
                (void) text_format(to, room, v->kind == VERDICT_MOVE ? "move" : "leave-out");
        else if (v->kind == VERDICT_END)
                (void) text_format(to, room, "%s/%s %d", word_of(v), ends[v->end], v->exit_code);
        else
                (void) text_format(to, room, "%s/%s", word_of(v),
                                   v->kind == VERDICT_RESHARD ? "reshard" : "restart");
}

static void judge(struct play *play)
{
        struct verdict v;

        offer_chips(play);
        while ((v = verdict_on(&play->world, play->now)).kind != VERDICT_GO_ON) {
                say(play, &v);
                if (v.kind == VERDICT_ASSIGN)
                        lay_out(play);
                if ((v.kind == VERDICT_RESTART || v.kind == VERDICT_RESHARD) &&
                    !play->story->setting.stubborn) {
                        fact(play, (struct world_fact){ .kind = WORLD_MPIRUN, .code = 137 });
                        halt_all(play);
                }
                if (v.kind == VERDICT_MOVE && play->kind == WORLD_CHIPS)
                        fact(play, (struct world_fact){ .kind = WORLD_HERE, .index = v.place });
        }
}

static void speak(struct play *play, size_t rank)
{
        struct progress_line line = { .epoch = -1 };

        if (play->world.ranks[rank].ended || (play->mute[rank] && !play->talk[rank]))
                return;
        if (!play->mute[rank]) {
                play->step[rank]++;
                play->busy[rank] += 0.08 * play->slow[rank]; /* three times that is not longer than a step */
        }
        line.step = play->step[rank];
        line.samples = 16 * (line.step + 1);
        line.samples_per_s = (double) line.samples / play->busy[rank];
        play->sent[rank].lines++;
        play->sent[rank].step = line.step;
        play->sent[rank].samples = line.samples;
        play->sent[rank].samples_per_s = line.samples_per_s;
        send_rank(play, rank);
}

static void pass(struct play *play, double seconds, bool steps)
{
        uint64_t end = play->now + (uint64_t) (seconds * (double) SECOND);

        judge(play);
        while (play->now < end) {
                play->now += LOOK;
                for (size_t i = 0; steps && play->world.phase == WORLD_RUNNING && i < play->world.rank_count;
                     i++)
                        speak(play, i);
                judge(play);
        }
}

static void set_all(bool *flags, const char *who)
{
        for (size_t i = 0; i < RANKS; i++)
                if (strcmp(who, "all") == 0 || (size_t) atoi(who) == i)
                        flags[i] = true;
}

/* Of a chip there is but one word: it cannot be used. */
static void lose(struct play *play, size_t rank, enum world_loss loss)
{
        if (play->kind == WORLD_CHIPS)
                run_migrate_fact(&play->world, play->place_of[rank], "it fell off the bus", play->now);
        else
                fact(play, (struct world_fact){
                                   .kind = WORLD_LOST, .index = play->place_of[rank], .code = (int) loss });
}

static void end_all(struct play *play, int code)
{
        for (size_t i = 0; i < play->world.rank_count; i++)
                if (!play->world.ranks[i].ended)
                        exit_rank(play, i, code);
}

static void stop(struct play *play, size_t rank, bool stopped, bool stuck)
{
        play->sent[rank].stopped = stopped;
        play->sent[rank].stuck = stuck;
        send_rank(play, rank);
}

/* Whole places: a rank of a cluster shares its place with another. */
static bool act_on_place(struct play *play, const char *verb, const char *who)
{
        size_t rank = (size_t) atoi(who);

        if (strcmp(verb, "sick") == 0)
                lose(play, rank, WORLD_SICK);
        else if (strcmp(verb, "gone") == 0)
                lose(play, rank, WORLD_GONE);
        else if (strcmp(verb, "left") == 0)
                lose(play, rank, WORLD_LEFT);
        else if (strcmp(verb, "node") == 0)
                lose(play, rank, WORLD_NODE_LOST);
        else if (strcmp(verb, "leave") == 0)
                fact(play, (struct world_fact){ .kind = WORLD_LEAVING, .index = play->place_of[rank] });
        else if (strcmp(verb, "back") == 0)
                fact(play, (struct world_fact){ .kind = WORLD_HERE, .index = play->place_of[rank] });
        else
                return false;
        return true;
}

static bool act_on_rank(struct play *play, const char *verb, const char *who, const char *what)
{
        size_t rank = (size_t) atoi(who);

        if (strcmp(verb, "mute") == 0) {
                set_all(play->mute, who);
        } else if (strcmp(verb, "talk") == 0) {
                set_all(play->talk, who);
        } else if (strcmp(verb, "slow") == 0) {
                for (size_t i = 0; i < RANKS; i++)
                        if (strcmp(who, "all") == 0 || i == rank)
                                play->slow[i] = atof(what);
        } else if (strcmp(verb, "exit") == 0) {
                play->now++;
                exit_rank(play, rank, atoi(what));
        } else if (strcmp(verb, "stop") == 0 || strcmp(verb, "cont") == 0 || strcmp(verb, "stuck") == 0) {
                stop(play, rank, strcmp(verb, "stop") == 0, strcmp(verb, "stuck") == 0);
        } else {
                return false;
        }
        return true;
}

static void act(struct play *play, const char *order)
{
        char verb[16] = "", who[16] = "", what[16] = "";

        (void) sscanf(order, "%15s %15s %15s", verb, who, what);
        if (strcmp(verb, "run") == 0 || strcmp(verb, "wait") == 0) {
                pass(play, atof(who), verb[0] == 'r');
        } else if (strcmp(verb, "paced") == 0) {
                pass(play, atof(who), false);
                for (size_t i = 0; i < play->world.rank_count; i++)
                        speak(play, i);
        } else if (strcmp(verb, "end") == 0) {
                fact(play, (struct world_fact){ .kind = WORLD_MPIRUN, .code = atoi(who) });
        } else if (strcmp(verb, "good") == 0) {
                end_all(play, 0);
                fact(play, (struct world_fact){ .kind = WORLD_MPIRUN, .code = 0 });
        } else if (strcmp(verb, "obey") == 0) {
                end_all(play, 143);
        } else if (strcmp(verb, "halt") == 0) {
                halt_all(play);
        } else if (strcmp(verb, "saved") == 0) {
                fact(play, (struct world_fact){ .kind = WORLD_SAVED });
        } else if (strcmp(verb, "cancel") == 0) {
                fact(play, (struct world_fact){ .kind = WORLD_CANCEL, .code = atoi(who) });
        } else if (!act_on_place(play, verb, who) && !act_on_rank(play, verb, who, what)) {
                fail_msg("'%s' is no order", order);
        }
}

static void open_play(struct play *play, const struct test_stories_story *story, enum world_kind kind)
{
        const struct test_stories_setting *setting = &story->setting;
        const struct world_rules rules = { .kind = kind,
                                           .restart_max = setting->restarts,
                                           .hang_usec = (setting->hang == 0 ? 10 : setting->hang) * SECOND,
                                           .grace_usec = 3 * SECOND,
                                           .patience_usec = setting->patience * SECOND,
                                           .global_batch = 64,
                                           .last_step = setting->last_step,
                                           .speaks = !setting->silent,
                                           .recut = setting->recut,
                                           .migrate = !setting->stay,
                                           .checkpoints = !setting->no_checkpoints,
                                           .log = "its words are above",
                                           .address = "10.0.0.1:7000" };
        size_t count = kind == WORLD_CHIPS ? RANKS : setting->spare ? 3 : 2;

        *play = (struct play){ .story = story, .kind = kind, .now = 100 * SECOND, .spare = setting->spare };
        assert_int_equal(world_init(&play->world, &rules, count, play->now, NULL), 0);
        for (size_t i = 0; i < RANKS; i++)
                play->slow[i] = 1;
        for (size_t i = 0; i < count; i++) {
                struct world_place *place = &play->world.places[i];

                (void) text_format(place->name, sizeof(place->name), kind == WORLD_CHIPS ? "GPU-%zu" : "g%zu",
                                   i);
                (void) text_copy(place->runtime, sizeof(place->runtime), "cuda");
                place->chips = kind == WORLD_CHIPS ? 1 : 2;
                place->role_min = setting->min == 0 ? RANKS : setting->min;
                place->spare = kind == WORLD_GROUPS && i == 2;
                fact(play, (struct world_fact){ .kind = WORLD_HERE, .index = i });
        }
        if (setting->saved)
                fact(play, (struct world_fact){ .kind = WORLD_SAVED });
        judge(play);
        assert_string_equal(play->said, "start");
        play->said[0] = '\0';
}

static void act_all(struct play *play)
{
        char script[1024], *rest = script, *order;

        (void) text_copy(script, sizeof(script), play->story->script);
        while ((order = strsep(&rest, ";")) != NULL)
                act(play, order);
        judge(play);
}

static bool tell(const struct test_stories_story *story, enum world_kind kind)
{
        struct play play;
        bool good;

        open_play(&play, story, kind);
        act_all(&play);
        good = strcmp(play.said, story->verdicts) == 0;
        if (!good)
                print_error("%s, %s:\n  expected: %s\n  verdicts: %s\n",
                            kind == WORLD_CHIPS ? "one host" : "cluster", story->sentence, story->verdicts,
                            play.said);
        world_free(&play.world);
        return good;
}

static void every_story_has_one_verdict_for_both_callers(void **state)
{
        size_t bad = 0;

        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(stories); i++)
                bad += (size_t) !tell(&stories[i], WORLD_CHIPS) + (size_t) !tell(&stories[i], WORLD_GROUPS);
        print_message("%zu stories\n", ARRAY_SIZE(stories));
        assert_int_equal(bad, 0);
}

#define HANG_REMEDY "; where a step may take so long, give a larger spec.restart.hangSeconds"

static const struct {
        enum world_kind kind;
        struct test_stories_setting setting;
        const char *script, *sentence;
} cases[] = {
        { WORLD_CHIPS,
          { 0 },
          "run 1; exit 1 7; wait 1",
          "rank 1 (cuda on GPU-1) ended with exit code 7; its log says why" },
        { WORLD_GROUPS,
          { 0 },
          "run 1; exit 3 137; wait 1",
          "rank 3 of group g1 was killed by signal 9 (Killed)" },
        { WORLD_GROUPS,
          { .hang = 2 },
          "mute 2; run 12",
          "rank 2 of group g1 hangs: it has not made one step" HANG_REMEDY },
        { WORLD_CHIPS,
          { .hang = 2 },
          "run 1; mute all; run 3",
          "rank 0 (cuda on GPU-0) has made no progress since step 3" HANG_REMEDY },
        { WORLD_CHIPS, /* in the kernel, and ahead: it only waits for the one that hangs */
          { .hang = 2 },
          "run 1; mute 2; run 1; mute all; stuck 3; run 3",
          "rank 2 (cuda on GPU-2) has made no progress since step 3" HANG_REMEDY },
        { WORLD_CHIPS, /* in the kernel, and no further than the others */
          { .hang = 2 },
          "run 1; mute all; stuck 3; run 3",
          "rank 3 (cuda on GPU-3) has made no progress since step 3" HANG_REMEDY },
        { WORLD_CHIPS, { 0 }, "sick 2", "chip GPU-2 of rank 2 cannot be used any more: it fell off the bus" },
        { WORLD_GROUPS, { 0 }, "gone 2", "group g1 is gone" },
        { WORLD_CHIPS,
          { .restarts = 1 },
          "sick 2",
          "chip GPU-2 of rank 2 cannot be used (it fell off the bus) and there is no spare one" },
        { WORLD_GROUPS,
          { .restarts = 1 },
          "gone 2",
          "group g1 is gone; 1 of its groups are lost and 2 chips are fewer than the job can do "
          "with" },
        { WORLD_CHIPS,
          { .restarts = 1 },
          "exit 0 1; wait 1; exit 0 1; wait 1",
          "rank 0 (cuda on GPU-0) ended with exit code 1; its log says why; no restart is left" },
        { WORLD_GROUPS, { 0 }, "end 1; wait 2", "mpirun ended with exit code 1; its words are above" },
};

/* What people read, and what scripts look for. */
static void the_sentences_name_rank_and_place(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
                const struct test_stories_story story = { "", cases[i].setting, cases[i].script, "" };
                struct play play;

                open_play(&play, &story, cases[i].kind);
                act_all(&play);
                assert_string_equal(play.last, cases[i].sentence);
                world_free(&play.world);
        }
}

/* The words of a rank may be as long as there is room for: what does not fit is cut, and not all of it. */
static void long_words_are_cut(void **state)
{
        const struct test_stories_story story = { "", { 0 }, "run 1; exit 1 137; wait 1", "" };
        char words[WORLD_TEXT_BYTES];
        struct play play;

        (void) state;
        memset(words, 'x', sizeof(words) - 1);
        words[sizeof(words) - 1] = '\0';
        open_play(&play, &story, WORLD_GROUPS);
        memset(play.world.places[0].name, 'g', sizeof(play.world.places[0].name) - 1);
        play.world.places[0].name[sizeof(play.world.places[0].name) - 1] = '\0';
        fact(&play, (struct world_fact){ .kind = WORLD_WORDS, .text = words });
        act_all(&play);
        if (!text_starts_with(play.last, "rank 1 of group ggg") || strstr(play.last, "(Killed): xxx") == NULL)
                fail_msg("got '%s'", play.last);
        world_free(&play.world);
}

static void groups_of_the_first_world_are_waited_for(void **state)
{
        const struct test_stories_story story = { "", { .restarts = 1, .spare = true }, "", "" };
        struct play play;

        (void) state;
        open_play(&play, &story, WORLD_GROUPS);
        play.world.phase = WORLD_GATHERING;
        play.world.rules.wait_usec = 10 * SECOND;
        play.world.phase_usec = play.now;
        play.world.places[1].used = false;
        play.world.places[1].there = play.world.places[2].there = false;
        pass(&play, 9, false);
        assert_string_equal(play.said, "");
        fact(&play,
             (struct world_fact){ .kind = WORLD_HERE, .index = 2 }); /* the spare one, when time is up */
        pass(&play, 2, false);
        assert_string_equal(play.said, "move start");
        play.world.phase = WORLD_GATHERING;
        play.world.places[2].there = false;
        pass(&play, 20, false);
        assert_string_equal(play.said, "move start GroupsMissing/failed 124");
        assert_string_equal(play.last,
                            "not every group came within 10 seconds (--wait-seconds): 1 did not, g1 first; "
                            "start remuda-launch --join 10.0.0.1:7000 there, or wait longer");
        world_free(&play.world);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_story_has_one_verdict_for_both_callers),
                cmocka_unit_test(the_sentences_name_rank_and_place),
                cmocka_unit_test(long_words_are_cut),
                cmocka_unit_test(groups_of_the_first_world_are_waited_for),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
