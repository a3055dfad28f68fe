/* Any bytes as a rendezvous message, the first one choosing which: never a crash; what is read is written
 * back to the same message, and a subtask that is accepted gives every chip of the group an entry. */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/launcher/rendezvous_pb.h"
#include "job/launcher/subtask_ranks.h"

static void order(const uint8_t *data, size_t size)
{
        struct rendezvous_order message, again;
        struct err err = { 0 };
        uint8_t *bytes;
        size_t length;

        if (rendezvous_order_decode(data, size, &message, &err) < 0)
                return;
        bytes = rendezvous_order_encode(&message, &length);
        if (bytes == NULL || rendezvous_order_decode(bytes, length, &again, &err) < 0 ||
            again.id != message.id || again.argc != message.argc)
                __builtin_trap();
        free(bytes);
        rendezvous_order_free(&again);
        rendezvous_order_free(&message);
}

static void subtask(const uint8_t *data, size_t size)
{
        struct rendezvous_order message;
        struct subtask_ranks ranks;
        struct err err = { 0 };

        if (rendezvous_order_decode(data, size, &message, &err) < 0)
                return;
        if (subtask_ranks(message.plan, "a", "/tmp", NULL, &ranks, &err) == 0 &&
            (json_array_size(json_object_get(ranks.file, "ranks")) != ranks.first_rank + ranks.chips))
                __builtin_trap();
        subtask_ranks_free(&ranks);
        rendezvous_order_free(&message);
}

static void plan(const uint8_t *data, size_t size)
{
        json_t *value = json_loadb((const char *) data, size, JSON_REJECT_DUPLICATES, NULL);
        struct pb_arena arena;
        Subtask__Plan *plan;
        struct err err = { 0 };
        uint64_t batch = 0;

        pb_arena_init(&arena, SUBTASK_ARENA_BYTES);
        if (value != NULL && subtask_read(value, &arena, &plan, &err) == 0) {
                for (size_t i = 0; i < plan->n_groups; i++)
                        batch += plan->groups[i]->used ? plan->groups[i]->batch : 0;
                if (batch != plan->global_batch)
                        __builtin_trap();
        }
        pb_arena_free(&arena);
        json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct rendezvous_join join;
        struct rendezvous_answer answer;
        struct rendezvous_start start;
        struct rendezvous_end end;
        struct rendezvous_seen seen;
        struct rendezvous_ask ask;
        struct err err = { 0 };
        char *json;

        if (size == 0)
                return 0;
        switch (data[0] % 10) {
        case 0:
                (void) rendezvous_join_decode(data + 1, size - 1, &join, &err);
                break;
        case 1:
                order(data + 1, size - 1);
                break;
        case 2:
                (void) rendezvous_answer_decode(data + 1, size - 1, &answer, &err);
                break;
        case 3:
                if (rendezvous_start_decode(data + 1, size - 1, &start, &err) == 0)
                        rendezvous_start_free(&start);
                break;
        case 4:
                (void) rendezvous_end_decode(data + 1, size - 1, &end, &err);
                break;
        case 5:
                subtask(data + 1, size - 1);
                break;
        case 6:
                if (rendezvous_seen_decode(data + 1, size - 1, &seen, &err) == 0 &&
                    seen.rank_count > RENDEZVOUS_CHIPS_MAX)
                        __builtin_trap();
                rendezvous_seen_free(&seen);
                break;
        case 7:
                (void) rendezvous_ask_decode(data + 1, size - 1, &ask, &err);
                break;
        case 8:
                (void) rendezvous_state_decode(data + 1, size - 1, &json, &err);
                free(json);
                break;
        default:
                plan(data + 1, size - 1);
        }
        return 0;
}
