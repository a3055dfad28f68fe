/* Any bytes as ExtenderArgs: never a crash; what is accepted is answered with valid JSON in both verbs: as
 * strict a reader as there is takes it where names alone come back, and where whole objects do, which are
 * the asker's own, one that takes their numbers, NULs and depth. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/json_read.h"
#include "scheduler-extender/ledger/ledger_life.h"
#include "scheduler-extender/ledger/ledger_pods.h"
#include "scheduler-extender/wire/extender_args.h"
#include "scheduler-extender/wire/extender_reply.h"
#include "scheduler-extender/wire/pod_json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_be_json(char *text, size_t bytes, bool strictly)
{
        json_t *json = text == NULL ? NULL
                       : strictly   ? json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL)
                                    : json_read(text, bytes, 0, NULL);

        if (text != NULL && json == NULL)
                __builtin_trap();
        json_decref(json);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *copy = malloc(size + 1);
        struct extender_args args;
        struct roster roster = { 0 };
        uint8_t *scores;
        struct err err = { 0 };

        if (copy == NULL)
                return 0;
        memcpy(copy, data, size);
        copy[size] = '\0';
        for (char name[] = "a"; name[0] <= 'e';
             name[0]++) /* names that the corpus uses, and expects in turn */
                (void) roster_add(&roster, name, 1);
        (void) roster_add(&roster, "n\"1", 3);
        if (extender_args_decode(copy, size, &roster, &args, &err) == 0) {
                struct ledger *ledger = ledger_life_new();
                struct pod_json_policy policy = { 0 };
                struct ledger_pod_facts facts;
                size_t bytes;
                char *reply;

                (void) pod_json_decode(args.pod, &policy, ledger, true, &facts, &err);
                for (size_t i = 0; i < args.node_count; i++)
                        if (args.verdicts[i] != EXTENDER_ARGS_AGAIN)
                                args.verdicts[i] = (uint8_t) (i % REASON_COUNT);
                scores = calloc(args.node_count + 1, 1);
                for (size_t i = 0; scores != NULL && i < args.node_count; i++)
                        scores[i] = (uint8_t) (i % 11);
                if (scores != NULL) {
                        reply = extender_reply_filter(&args, NULL, &bytes);
                        must_be_json(reply, bytes, !args.full);
                        reply = extender_reply_prioritize(&args, scores, &bytes);
                        must_be_json(reply, bytes, true);
                }
                free(scores);
                ledger_life_free(ledger);
        } else if (err.msg[0] == '\0') {
                __builtin_trap();
        }
        extender_args_free(&args);
        roster_free(&roster);
        free(copy);
        return 0;
}
