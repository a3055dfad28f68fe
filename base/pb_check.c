/* Finds each row's field in the message by its descriptor. */
#include "base/pb_check.h"

#include <string.h>

static uint64_t figure_of(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
        const void *value = (const char *) message + field->offset;

        if (field->label == PROTOBUF_C_LABEL_REPEATED)
                return *(const size_t *) (const void *) ((const char *) message + field->quantifier_offset);
        switch (field->type) {
        case PROTOBUF_C_TYPE_STRING:
                return strlen(*(char *const *) value);
        case PROTOBUF_C_TYPE_UINT64:
                return *(const uint64_t *) value;
        default: /* of 32 bits */
                return *(const uint32_t *) value;
        }
}

int pb_check(const struct pb_check *rows, const ProtobufCMessage *message, int code, struct err *err)
{
        for (const struct pb_check *row = rows; row->of != NULL; row++) {
                const ProtobufCFieldDescriptor *field =
                        row->of != message->descriptor
                                ? NULL
                                : protobuf_c_message_descriptor_get_field_by_name(row->of, row->field);
                uint64_t figure = field == NULL ? 0 : figure_of(message, field);

                if (field != NULL && (figure < row->min || figure > row->max))
                        return err_set(err, code, "%s: %llu%s is not in %llu..%llu", row->field,
                                       (unsigned long long) figure,
                                       field->label == PROTOBUF_C_LABEL_REPEATED ? " of them"
                                       : field->type == PROTOBUF_C_TYPE_STRING   ? " bytes"
                                                                                 : "",
                                       (unsigned long long) row->min, (unsigned long long) row->max);
        }
        return 0;
}
