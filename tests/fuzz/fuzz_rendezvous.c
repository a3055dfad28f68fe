/* Any bytes as a rendezvous message, the first one choosing which: never a crash; what is read is written
 * back to the same message, and a subtask that is accepted gives every chip of the group an entry. */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "job/launcher/message.h"
#include "job/launcher/subtask_ranks.h"

static const ProtobufCMessageDescriptor *const kinds[] = {
        &rendezvous__join__descriptor,  &rendezvous__order__descriptor, &rendezvous__answer__descriptor,
        &rendezvous__start__descriptor, &rendezvous__end__descriptor,   &rendezvous__order__descriptor,
        &rendezvous__seen__descriptor,  &rendezvous__ask__descriptor,   &rendezvous__state__descriptor,
};

static void subtask(const Rendezvous__Order *order)
{
        static const struct subtask_ranks_host host = { .folder = "/tmp", .threads = 1 };
        struct subtask_ranks ranks;
        struct err err = { 0 };

        if (subtask_ranks(order->plan, "a", &host, &ranks, &err) == 0 &&
            (json_array_size(json_object_get(ranks.file, "ranks")) != ranks.first_rank + ranks.chips ||
             json_array_size(json_object_get(ranks.plan, "ranks")) < ranks.first_rank + ranks.chips))
                __builtin_trap();
        subtask_ranks_free(&ranks);
}

/* Has a message, or one in it, fields that are not of its .proto? They are passed on as they are, also where
 * that makes no message (protobuf-c reads a field of number 0, and does not read it again). */
static bool has_strangers(const ProtobufCMessage *message)
{
        const ProtobufCMessageDescriptor *of = message->descriptor;

        for (unsigned i = 0; i < of->n_fields; i++) {
                const ProtobufCFieldDescriptor *field = &of->fields[i];
                const char *at = (const char *) message + field->offset;
                bool list = field->label == PROTOBUF_C_LABEL_REPEATED;
                size_t count = list ? *(const size_t *) (const void *) ((const char *) message +
                                                                        field->quantifier_offset)
                                    : 1;

                if (field->type != PROTOBUF_C_TYPE_MESSAGE)
                        continue;
                for (size_t k = 0; k < count; k++) {
                        const ProtobufCMessage *inner =
                                list ? (*(ProtobufCMessage *const *const *) (const void *) at)[k]
                                     : *(ProtobufCMessage *const *) (const void *) at;

                        if (inner != NULL && has_strangers(inner))
                                return true;
                }
        }
        return message->n_unknown_fields > 0;
}

/* What is read is written back to the same message. */
static void message(size_t kind, const uint8_t *data, size_t size)
{
        struct pb_arena arena, second;
        struct err err = { 0 };
        void *read = message_read(&arena, kinds[kind], data, size, &err);
        size_t length = 0, again = 0;
        uint8_t *bytes = read == NULL || has_strangers(read) ? NULL : pb_pack(read, &length), *same = NULL;
        void *reread = bytes == NULL || length > MESSAGE_MAX_BYTES
                               ? NULL
                               : message_read(&second, kinds[kind], bytes, length, &err);

        if (bytes != NULL && length <= MESSAGE_MAX_BYTES) {
                same = reread == NULL ? NULL : pb_pack(reread, &again);
                if (same == NULL || again != length || memcmp(same, bytes, length) != 0)
                        __builtin_trap();
                pb_arena_free(&second);
        }
        if (read != NULL && kind == 5)
                subtask(read);
        pb_arena_free(&arena);
        free(bytes);
        free(same);
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
                for (size_t i = 0; i < plan->n_groups; i++) {
                        const Subtask__Group *group = plan->groups[i];

                        batch += group->used ? group->batch : 0;
                        if (group->used &&
                            (group->n_chip_batches != group->chips || subtask_chips(group) != group->batch))
                                __builtin_trap();
                }
                if (batch != plan->global_batch)
                        __builtin_trap();
        }
        pb_arena_free(&arena);
        json_decref(value);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size == 0)
                return 0;
        if (data[0] % 10 == 9)
                plan(data + 1, size - 1);
        else
                message(data[0] % 10, data + 1, size - 1);
        return 0;
}
