/* Walks a message's descriptor: which fields there are, of what type, and where each lies in the struct. */
#include "base/json/pb_json.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/text.h"

static void *at(const void *message, unsigned offset)
{
        return (char *) message + offset;
}

static_assert(sizeof(protobuf_c_boolean) == sizeof(uint32_t), "size_of() takes one for a number");

static size_t size_of(const ProtobufCFieldDescriptor *field)
{
        switch (field->type) {
        case PROTOBUF_C_TYPE_UINT64:
                return sizeof(uint64_t);
        case PROTOBUF_C_TYPE_DOUBLE:
                return sizeof(double);
        case PROTOBUF_C_TYPE_STRING:
        case PROTOBUF_C_TYPE_MESSAGE:
                return sizeof(void *);
        default: /* numbers of 32 bits, enumerations, booleans */
                return sizeof(uint32_t);
        }
}

/* Strings and messages that are not there are null pointers, or point to their default. */
static bool is_pointer(const ProtobufCFieldDescriptor *field)
{
        return field->type == PROTOBUF_C_TYPE_STRING || field->type == PROTOBUF_C_TYPE_MESSAGE;
}

/* { key: string, value: string }, any number of them: what a `map` is on the wire. */
static bool is_map(const ProtobufCFieldDescriptor *field)
{
        const ProtobufCMessageDescriptor *entry = field->descriptor;

        return field->label == PROTOBUF_C_LABEL_REPEATED && field->type == PROTOBUF_C_TYPE_MESSAGE &&
               entry->n_fields == 2 && strcmp(entry->fields[0].name, "key") == 0;
}

static const char *word_of(const ProtobufCEnumDescriptor *words, int number)
{
        const ProtobufCEnumValue *value = protobuf_c_enum_descriptor_get_value(words, number);

        return value == NULL ? "" : value->name;
}

/* The messages here are as deep as their .proto, none of which is recursive. NOLINTBEGIN(misc-no-recursion)
 */
static json_t *encode_value(const ProtobufCFieldDescriptor *field, const void *value)
{
        switch (field->type) {
        case PROTOBUF_C_TYPE_UINT64:
                return json_integer(*(const json_int_t *) value);
        case PROTOBUF_C_TYPE_DOUBLE:
                return json_real(*(const double *) value);
        case PROTOBUF_C_TYPE_BOOL:
                return json_boolean(*(const protobuf_c_boolean *) value);
        case PROTOBUF_C_TYPE_ENUM:
                return json_string(word_of(field->descriptor, *(const int *) value));
        case PROTOBUF_C_TYPE_STRING:
                return json_string(*(char *const *) value);
        case PROTOBUF_C_TYPE_MESSAGE:
                return pb_json_encode(*(ProtobufCMessage *const *) value);
        default: /* numbers of 32 bits */
                return json_integer(*(const uint32_t *) value);
        }
}

/* An object of them: { key: "A", value: "1" }, { key: "B", value: "2" } -> {"A": "1", "B": "2"}. */
static int encode_entry(const ProtobufCFieldDescriptor *field, const void *entry, json_t *object)
{
        const ProtobufCFieldDescriptor *pair =
                ((const ProtobufCMessageDescriptor *) field->descriptor)->fields;

        return json_object_set_new(object, *(char *const *) at(entry, pair[0].offset),
                                   encode_value(&pair[1], at(entry, pair[1].offset)));
}

static json_t *encode_repeated(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
        size_t count = *(const size_t *) at(message, field->quantifier_offset);
        const char *items = *(char *const *) at(message, field->offset);
        json_t *list = is_map(field) ? json_object() : json_array();
        int r = 0;

        for (size_t i = 0; i < count && r == 0; i++) {
                const void *item = items + i * size_of(field);

                r = json_is_object(list) ? encode_entry(field, *(void *const *) item, list)
                                         : json_array_append_new(list, encode_value(field, item));
        }
        if (r < 0) {
                json_decref(list);
                return NULL;
        }
        return list;
}

static bool is_there(const ProtobufCFieldDescriptor *field, const ProtobufCMessage *message)
{
        if (field->label == PROTOBUF_C_LABEL_REPEATED)
                return *(const size_t *) at(message, field->quantifier_offset) > 0;
        if (is_pointer(field))
                return *(void *const *) at(message, field->offset) != NULL &&
                       *(void *const *) at(message, field->offset) != field->default_value;
        return field->label == PROTOBUF_C_LABEL_REQUIRED ||
               *(const protobuf_c_boolean *) at(message, field->quantifier_offset);
}

json_t *pb_json_encode(const ProtobufCMessage *message)
{
        json_t *object = json_object();
        bool failed = object == NULL;

        for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
                const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

                if (is_there(field, message))
                        failed = json_object_set_new(
                                         object, field->name,
                                         field->label == PROTOBUF_C_LABEL_REPEATED
                                                 ? encode_repeated(field, message)
                                                 : encode_value(field, at(message, field->offset))) < 0 ||
                                 failed;
        }
        if (failed) {
                json_decref(object);
                object = NULL;
        }
        return object;
}

/* "worker or server" */
static void list_words(const ProtobufCEnumDescriptor *words, char *into, size_t into_bytes)
{
        struct text list = { 0 };

        for (unsigned i = 0; i < words->n_values; i++)
                text_printf(&list, "%s%s",
                            i == 0                     ? ""
                            : i + 1 == words->n_values ? " or "
                                                       : ", ",
                            words->values[i].name);
        (void) text_copy(into, into_bytes, list.data == NULL ? "" : list.data);
        text_free(&list);
}

static int not_a(const ProtobufCFieldDescriptor *field, struct err *err)
{
        bool list = field->label == PROTOBUF_C_LABEL_REPEATED;
        char words[128];

        switch (field->type) {
        case PROTOBUF_C_TYPE_BOOL:
                return err_set(err, -EINVAL, "%s: true or false is needed", field->name);
        case PROTOBUF_C_TYPE_STRING:
                return err_set(err, -EINVAL,
                               list ? "%s: a list of strings is needed" : "%s: a string is needed",
                               field->name);
        case PROTOBUF_C_TYPE_DOUBLE:
                return err_set(err, -EINVAL,
                               list ? "%s: a list of numbers is needed" : "%s: a number is needed",
                               field->name);
        case PROTOBUF_C_TYPE_ENUM:
                list_words(field->descriptor, words, sizeof(words));
                return err_set(err, -EINVAL, "%s: %s is needed", field->name, words);
        case PROTOBUF_C_TYPE_MESSAGE:
                return err_set(err, -EINVAL,
                               is_map(field) ? "%s: an object of strings is needed"
                               : list        ? "%s: a list of objects is needed"
                                             : "%s: an object is needed",
                               field->name);
        default:
                return err_set(err, -EINVAL, "%s: a whole number is needed", field->name);
        }
}

static bool decode_integer(const json_t *value, json_int_t max, json_int_t *ret)
{
        *ret = json_integer_value(value);
        return json_is_integer(value) && *ret >= 0 && *ret <= max;
}

static bool decode_word(const ProtobufCEnumDescriptor *words, const json_t *value, uint32_t *ret)
{
        const ProtobufCEnumValue *found =
                json_is_string(value)
                        ? protobuf_c_enum_descriptor_get_value_by_name(words, json_string_value(value))
                        : NULL;

        *ret = found == NULL ? 0 : (uint32_t) found->value;
        return found != NULL;
}

static int decode_value(const ProtobufCFieldDescriptor *field, const json_t *value, struct pb_arena *arena,
                        void *into, struct err *err)
{
        json_int_t number = 0;
        uint32_t word = 0;
        bool fits = true;

        switch (field->type) {
        case PROTOBUF_C_TYPE_UINT64:
                fits = decode_integer(value, INT64_MAX, &number);
                *(json_int_t *) into = number;
                break;
        case PROTOBUF_C_TYPE_DOUBLE:
                fits = json_is_number(value);
                *(double *) into = json_number_value(value);
                break;
        case PROTOBUF_C_TYPE_BOOL:
                fits = json_is_boolean(value);
                *(protobuf_c_boolean *) into = json_is_true(value);
                break;
        case PROTOBUF_C_TYPE_ENUM:
                fits = decode_word(field->descriptor, value, &word);
                *(uint32_t *) into = word;
                break;
        case PROTOBUF_C_TYPE_STRING:
                if (!json_is_string(value))
                        return not_a(field, err);
                *(char **) into = pb_arena_copy(arena, json_string_value(value));
                return *(char **) into == NULL ? err_set(err, -ENOMEM, "no memory for the message") : 0;
        case PROTOBUF_C_TYPE_MESSAGE:
                if (!json_is_object(value))
                        return not_a(field, err);
                *(void **) into = pb_json_decode(value, field->descriptor, arena, err);
                return *(void **) into == NULL ? -EINVAL : 0;
        default: /* numbers of 32 bits */
                fits = decode_integer(value, UINT32_MAX, &number);
                *(uint32_t *) into = (uint32_t) number;
        }
        return fits ? 0 : not_a(field, err);
}

static int decode_list(const ProtobufCFieldDescriptor *field, const json_t *list, struct pb_arena *arena,
                       char *items, struct err *err)
{
        for (size_t i = 0; i < json_array_size(list); i++) {
                int r = decode_value(field, json_array_get(list, i), arena, items + i * size_of(field), err);

                if (r < 0)
                        return field->type == PROTOBUF_C_TYPE_MESSAGE
                                       ? err_wrap(err, r, "%s[%zu]", field->name, i)
                                       : not_a(field, err);
        }
        return 0;
}

static int decode_map(const ProtobufCFieldDescriptor *field, const json_t *object, struct pb_arena *arena,
                      void **items, struct err *err)
{
        const char *name;
        json_t *value;
        int r = 0;

        json_object_foreach((json_t *) object, name, value)
        {
                json_t *pair = json_pack("{s:s, s:O}", "key", name, "value", value);

                *items = pair == NULL ? NULL : pb_json_decode(pair, field->descriptor, arena, err);
                json_decref(pair);
                if (*items++ == NULL)
                        r = -EINVAL;
                if (r < 0)
                        return err_set(err, r, "%s.%.60s: a string is needed", field->name, name);
        }
        return r;
}

static int decode_repeated(const ProtobufCFieldDescriptor *field, const json_t *value, struct pb_arena *arena,
                           ProtobufCMessage *message, struct err *err)
{
        bool map = is_map(field);
        size_t count = map ? json_object_size(value) : json_array_size(value);
        void *items = pb_arena_take(arena, count * size_of(field));

        if (map ? !json_is_object(value) : !json_is_array(value))
                return not_a(field, err);
        if (items == NULL)
                return err_set(err, -ENOMEM, "%s: larger than any may be", field->name);
        *(void **) at(message, field->offset) = items;
        *(size_t *) at(message, field->quantifier_offset) = count;
        return map ? decode_map(field, value, arena, items, err)
                   : decode_list(field, value, arena, items, err);
}

void *pb_json_decode(const json_t *object, const ProtobufCMessageDescriptor *descriptor,
                     struct pb_arena *arena, struct err *err)
{
        ProtobufCMessage *message = pb_arena_take(arena, descriptor->sizeof_message);
        int r = message == NULL ? err_set(err, -ENOMEM, "no memory for the message") : 0;

        if (message != NULL)
                descriptor->message_init(message);
        for (unsigned i = 0; r == 0 && i < descriptor->n_fields; i++) {
                const ProtobufCFieldDescriptor *field = &descriptor->fields[i];
                const json_t *value = json_object_get(object, field->name);

                if (value == NULL || json_is_null(value))
                        continue;
                if (field->label == PROTOBUF_C_LABEL_REPEATED) {
                        r = decode_repeated(field, value, arena, message, err);
                        continue;
                }
                r = decode_value(field, value, arena, at(message, field->offset), err);
                if (r < 0 && field->type == PROTOBUF_C_TYPE_MESSAGE && json_is_object(value))
                        r = err_wrap(err, r, "%s", field->name);
                if (field->label == PROTOBUF_C_LABEL_OPTIONAL && !is_pointer(field))
                        *(protobuf_c_boolean *) at(message, field->quantifier_offset) = 1;
        }
        return r == 0 ? message : NULL;
}
/* NOLINTEND(misc-no-recursion) */
