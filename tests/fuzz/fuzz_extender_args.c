/* Any bytes as ExtenderArgs: never a crash; what is accepted is answered with valid JSON in both verbs: as
 * strict a reader as there is takes it where names alone come back, and where whole objects do, which are
 * the asker's own, one that takes their numbers, NULs and depth. What is asked again, with a list of names
 * that is kept, is answered the same. */
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

static void must_be_json(const char *text, size_t bytes, bool strictly)
{
        json_t *json = text == NULL ? NULL
                       : strictly   ? json_loadb(text, bytes, JSON_REJECT_DUPLICATES, NULL)
                                    : json_read(text, bytes, 0, NULL);

        if (text != NULL && json == NULL)
                __builtin_trap();
        json_decref(json);
}

static void answer(const struct extender_args *args, const uint8_t *scores, char *replies[2])
{
        size_t bytes;

        for (size_t i = 0; i < args->node_count; i++)
                if (args->verdicts[i] != EXTENDER_ARGS_AGAIN)
                        args->verdicts[i] = (uint8_t) (i % REASON_COUNT);
        replies[0] = extender_reply_filter(args, NULL, &bytes);
        must_be_json(replies[0], bytes, !args->full);
        replies[1] = extender_reply_prioritize(args, scores, &bytes);
        must_be_json(replies[1], bytes, true);
}

static void look_at_pod(const json_t *pod)
{
        struct ledger *ledger = ledger_life_new();
        struct pod_json_policy policy = { 0 };
        struct ledger_pod_facts facts;
        struct err err = { 0 };

        (void) pod_json_decode(pod, &policy, ledger, true, &facts, &err);
        ledger_life_free(ledger);
}

/* Asked again the answer is the same, whether the list is found or read anew. */
static void ask_again(const char *text, size_t size, struct roster *roster, struct names_memory *memory,
                      const uint8_t *scores, char *const before[2])
{
        struct extender_args args;
        struct err err = { 0 };
        char *replies[2] = { NULL, NULL };

        if (extender_args_decode(text, size, roster, memory, &args, &err) < 0)
                __builtin_trap();
        answer(&args, scores, replies);
        for (size_t i = 0; i < 2; i++) {
                if (replies[i] != NULL && before[i] != NULL && strcmp(replies[i], before[i]) != 0)
                        __builtin_trap();
                free(replies[i]);
        }
        extender_args_free(&args);
}

static void ask(const char *text, size_t size, struct roster *roster, struct names_memory *memory)
{
        struct extender_args args;
        struct err err = { 0 };
        char *replies[2] = { NULL, NULL };
        uint8_t *scores;

        if (extender_args_decode(text, size, roster, memory, &args, &err) < 0) {
                if (err.msg[0] == '\0')
                        __builtin_trap();
                extender_args_free(&args);
                return;
        }
        look_at_pod(args.pod);
        scores = calloc(args.node_count + 1, 1);
        for (size_t i = 0; scores != NULL && i < args.node_count; i++)
                scores[i] = (uint8_t) (i % 11);
        if (scores != NULL)
                answer(&args, scores, replies);
        extender_args_free(&args);
        if (scores != NULL)
                ask_again(text, size, roster, memory, scores, replies);
        (void) roster_add(roster, "z", 1);
        if (scores != NULL)
                ask_again(text, size, roster, memory, scores, replies);
        free(scores);
        free(replies[0]);
        free(replies[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *copy = malloc(size + 1);
        struct names_memory memory = { 0 };
        struct roster roster = { 0 };

        if (copy == NULL)
                return 0;
        memcpy(copy, data, size);
        copy[size] = '\0';
        for (char name[] = "a"; name[0] <= 'e'; name[0]++) /* the corpus' names, which it expects in turn */
                (void) roster_add(&roster, name, 1);
        (void) roster_add(&roster, "n\"1", 3);
        ask(copy, size, &roster, &memory);
        names_memory_free(&memory);
        roster_free(&roster);
        free(copy);
        return 0;
}
