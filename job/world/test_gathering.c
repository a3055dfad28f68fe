/* Groups that come, that do not, and that come and say no more: until the first world runs. */
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
#include "job/world/verdict.h"

/* Two groups, a and b, of four chips each, and a spare one, s. Words of a script: here, ready, halted, lost,
 * left GROUP; wait SECONDS. */
struct story {
        const char *sentence;
        uint64_t wait_s, restarts;
        const char *script, *verdicts, *says; /* says: the last sentence has it */
};

/* clang-format off */
static const struct story stories[] = {
        { "a world begins when all have come and are ready", 10, 0, "here a; here b; ready a; ready b", "/assign /start", "" },
        { "not before", 0, 0, "here a; wait 100000; here b; ready b; wait 100000", "/assign", "" },
        { "who does not come in time is missed", 10, 0, "here a; wait 9; wait 2", "GroupsMissing/end", "not every group came within 10 seconds (--wait-seconds): 1 did not, b first" },
        { "and so are all", 10, 0, "wait 11", "GroupsMissing/end", "2 did not, a first; start remuda-launch --join" },
        { "who has come and says no more, too", 10, 0, "here a; here b; ready a; wait 11", "/assign GroupsMissing/end", "1 groups have joined and did not answer within 10 seconds" },
        { "also of several", 10, 0, "here a; here b; wait 11", "/assign GroupsMissing/end", "2 groups have joined and did not answer within 10 seconds (--wait-seconds), a first" },
        { "a spare one takes the place of one that does not come", 10, 0, "here s; here a; wait 11; ready a; ready s", "Replaced/move /assign /start", "" },
        { "but is not waited for", 10, 0, "here a; here b; here s; ready a; ready b", "/assign /start", "" },
        { "one that goes before it begins may come again", 10, 0, "here a; lost a; here b; wait 5; here a; ready a; ready b", "GroupLost/say /assign /start", "" },
        { "one that leaves, too", 0, 0, "here a; left a; here b; wait 5; here a; ready a; ready b", "GroupLeft/say /assign /start", "" },
        { "one that goes while it begins is a fault", 10, 0, "here a; here b; ready a; lost b", "/assign GroupLost/end", "group b is gone" },
        { "that may be repaired, once the others have ended what they ran", 10, 1, "here a; here b; ready a; lost b; here b; wait 9; halted a; ready a; ready b", "/assign GroupLost/restart Restarting/say /assign /start", "" },
        { "or had their time to", 10, 1, "here a; here b; ready a; lost b; here b; wait 14; wait 2; ready a; ready b", "/assign GroupLost/restart Restarting/say /assign /start", "" },
        { "a spare one that goes is no fault", 10, 0, "here a; here b; here s; ready a; lost s; ready b", "/assign GroupLost/say /start", "" },
};
/* clang-format on */

struct play {
        struct world world;
        uint64_t now;
        char said[512], last[WORLD_TEXT_BYTES + 64];
};

static void begin(struct play *p, const struct story *story)
{
        const struct world_rules rules = { .kind = WORLD_GROUPS,
                                           .wait_usec = story->wait_s * 1000000,
                                           .restart_max = story->restarts,
                                           .hang_usec = 60000000,
                                           .global_batch = 64,
                                           .migrate = true,
                                           .log = "its log",
                                           .address = "10.0.0.7:7000" };

        *p = (struct play){ .now = 1000000 };
        assert_int_equal(world_init(&p->world, &rules, 3, p->now, NULL), 0);
        for (size_t i = 0; i < 3; i++) {
                struct world_place *place = &p->world.places[i];

                (void) text_format(place->name, sizeof(place->name), "%c", "abs"[i]);
                (void) text_copy(place->runtime, sizeof(place->runtime), "cuda");
                place->chips = 4;
                place->role_min = 8;
                place->spare = i == 2;
        }
}

/* What the manager does when it is told to: a rank a group. */
static void lay_out(struct world *world)
{
        size_t count = 0;

        for (size_t i = 0; i < world->place_count; i++)
                count += world->places[i].used;
        assert_int_equal(world_lay_out(world, count, NULL), 0);
        for (size_t i = 0, rank = 0; i < world->place_count; i++)
                if (world->places[i].used)
                        world->ranks[rank++].place = i;
}

static void judge(struct play *p)
{
        static const char *const kinds[] = {
                [VERDICT_SAY] = "say",         [VERDICT_ASSIGN] = "assign", [VERDICT_START] = "start",
                [VERDICT_RESTART] = "restart", [VERDICT_MOVE] = "move",     [VERDICT_END] = "end"
        };

        for (struct verdict v = verdict_on(&p->world, p->now); v.kind != VERDICT_GO_ON;
             v = verdict_on(&p->world, p->now)) {
                size_t length = strlen(p->said);

                snprintf(p->said + length, sizeof(p->said) - length, "%s%s/%s", length > 0 ? " " : "",
                         v.reason, kinds[v.kind]);
                (void) text_copy(p->last, sizeof(p->last), v.message);
                if (v.kind == VERDICT_ASSIGN)
                        lay_out(&p->world);
        }
}

static void play_word(struct play *p, const char *word)
{
        static const struct {
                const char *word;
                enum world_fact_kind kind;
                int code;
        } facts[] = {
                { "here", WORLD_HERE, 0 },          { "ready", WORLD_READY, 0 },
                { "halted", WORLD_HALTED, 0 },      { "lost", WORLD_LOST, WORLD_GONE },
                { "left", WORLD_LOST, WORLD_LEFT },
        };
        const char *of = strchr(word, ' ') + 1;

        if (text_starts_with(word, "wait "))
                p->now += strtoull(of, NULL, 10) * 1000000;
        for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
                struct world_fact fact = { .kind = facts[i].kind,
                                           .code = facts[i].code,
                                           .index = *of == 's' ? 2 : (size_t) (*of - 'a') };

                if (text_starts_with(word, facts[i].word))
                        world_observe(&p->world, &fact, p->now);
        }
        judge(p);
}

static void each_story_has_its_end(void **state)
{
        (void) state;
        for (size_t i = 0; i < ARRAY_SIZE(stories); i++) {
                struct play p;
                char script[200], *rest = script, *word;

                begin(&p, &stories[i]);
                (void) text_copy(script, sizeof(script), stories[i].script);
                judge(&p);
                while ((word = strsep(&rest, ";")) != NULL)
                        play_word(&p, word + strspn(word, " "));
                if (strcmp(p.said, stories[i].verdicts) != 0 || strstr(p.last, stories[i].says) == NULL)
                        fail_msg("%s: want '%s', got '%s' (%s)", stories[i].sentence, stories[i].verdicts,
                                 p.said, p.last);
                world_free(&p.world);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_story_has_its_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
