/* Their bounds, and what a message must be beyond them. */
#include "job/launcher/message.h"

#include <errno.h>

#include "base/cleanup.h"
#include "base/pb_check.h"
#include "base/sha256.h"
#include "job/spec/job.h"
#include "job/world/progress.h"
#include "planner/shards/live_shares.h"

#define ARENA_BYTES ((size_t) 4 << 20)

static const struct pb_check bounds[] = {
#include "job/launcher/rendezvous.bounds.h"
        { .of = NULL },
};

static const void *field_of(const ProtobufCMessage *message, const char *name)
{
        const ProtobufCFieldDescriptor *field =
                protobuf_c_message_descriptor_get_field_by_name(message->descriptor, name);

        return field == NULL ? NULL : (const char *) message + field->offset;
}

/* What becomes the name of something. */
static int check_label(const ProtobufCMessage *message, const char *name, struct err *err)
{
        char *const *label = field_of(message, name);

        if (label != NULL && !object_name_label_valid(*label))
                return err_set(err, -EBADMSG, "%s: '%.80s' is not 1 to 63 small letters, digits and '-'",
                               name, *label);
        return 0;
}

static int check_sha256(const ProtobufCMessage *message, struct err *err)
{
        char *const *hex = field_of(message, "program_sha256");

        return hex == NULL || (*hex)[0] == '\0' || sha256_is_hex(*hex)
                       ? 0
                       : err_set(err, -EBADMSG, "program_sha256: not 64 hexadecimal digits");
}

void *message_read(struct pb_arena *arena, const ProtobufCMessageDescriptor *of, const uint8_t *bytes,
                   size_t size_bytes, struct err *err)
{
        ProtobufCMessage *message = NULL;

        pb_arena_init(arena, ARENA_BYTES);
        if (size_bytes <= MESSAGE_MAX_BYTES)
                message = pb_unpack(arena, of, bytes, size_bytes);
        if (message == NULL) {
                (void) err_set(err, -EBADMSG, "not a rendezvous message, or a larger one than any may be");
                return NULL;
        }
        return pb_check(bounds, message, -EBADMSG, err) < 0 || check_label(message, "group", err) < 0 ||
                               check_label(message, "host", err) < 0 || check_sha256(message, err) < 0
                       ? NULL
                       : message;
}

int message_call(struct grpc_client *client, const char *path, const void *message, uint64_t timeout_usec,
                 const struct grpc_client_handlers *handlers, struct grpc_client_call **ret)
{
        size_t size;
        CLEANUP(free_p) uint8_t *bytes = pb_pack(message, &size);

        return bytes == NULL ? -ENOMEM
                             : grpc_client_call(client, path, bytes, size, timeout_usec, handlers, ret);
}
