/* Any lines as requests to the extender's doors, in memory (tests/model/world.h): the first byte of a line
 * says which door, the rest is the body. What is answered with 200 is JSON, what is refused is said, nobody
 * waits for ever, and no promise of the world is broken. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_read.h"
#include "scheduler-extender/extender.h"
#include "scheduler-extender/extender_options.h"
#include "tests/model/stand_ins.h"
#include "tests/model/views.h"
#include "tests/model/world.h"

#define PODS 6

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *reply, unsigned status)
{
        json_t *json = json_read(reply, strlen(reply), JSON_DECODE_ANY, NULL); /* a node's object goes back
                                                                                * as it came */

        if (reply[0] == '\0' || (status == 200 && json == NULL))
                abort();
        json_decref(json);
}

static void on_answer(void *userdata, unsigned status, const char *reply)
{
        check(reply, status);
        *(bool *) userdata = true;
}

static void deliver(void)
{
        while (view_answer(0) || view_deliver(0))
                stand_ins_run();
        stand_ins_run();
}

static void ask(uint8_t door, const char *body)
{
        static const char *const paths[] = { "/scheduler/filter", "/scheduler/prioritize", "/scheduler/bind",
                                             "/v1/whatif", "/v1/explain" };
        static bool answered;
        struct stand_ins_call *call = calloc(1, sizeof(*call));

        if (call == NULL)
                abort();
        answered = false;
        call->done = on_answer;
        call->userdata = &answered;
        if (stand_ins_call(0, paths[door % (sizeof(paths) / sizeof(paths[0]))], body, call)) {
                for (int seconds = 0; seconds < 600 && !answered; seconds++) {
                        deliver();
                        stand_ins_monotonic_usec += 1000000;
                        stand_ins_realtime_usec += 1000000;
                }
                if (!answered)
                        abort();
                return;
        }
        check(call->reply == NULL ? "" : call->reply, call->status);
        free(call->reply);
        free(call);
}

static void fill_world(struct chance *chance)
{
        world_reset(chance);
        stand_ins_monotonic_usec = UINT64_C(1000000000);
        stand_ins_realtime_usec = UINT64_C(1795000000000000);
        stand_ins_leader = -1;
        for (unsigned i = 0; i < PODS; i++) {
                struct world_pod *pod = &world.pods[i];

                pod->exists = true;
                pod->uid = ++world.uids;
                pod->node = -1;
                pod->chips = 1 + i;
                pod->created_usec = stand_ins_realtime_usec;
                pod->labels = json_object();
                pod->annotations = json_object();
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct chance chance = { .seed = 1 };
        struct extender_options options;
        struct extender *extender;
        char *lines = strndup((const char *) data, size), *rest = lines, *line;

        if (lines == NULL)
                abort();
        extender_options_default(&options);
        options.server.store = "kubernetes";
        options.server.emergency_namespaces = "ops";
        options.server.stale_after_sec = 0;
        fill_world(&chance);
        stand_ins_opening = 0;
        if (extender_new(NULL, &options, &extender, NULL) < 0)
                abort();
        deliver();
        stand_ins_lead(0);
        deliver();
        while ((line = strsep(&rest, "\n")) != NULL)
                if (line[0] != '\0')
                        ask((uint8_t) (line[0] - '0'), line + 1);
        deliver();
        if (world.wrong != NULL) {
                (void) fprintf(stderr, "%s: %s\n", world.wrong, world.detail);
                abort();
        }
        stand_ins_leader = -1;
        extender_free(extender);
        free(lines);
        return 0;
}
