/* A JSON value becomes events of libyaml. */
#include "base/yaml/yaml_dump.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/text.h"
#include "base/yaml/yaml_scalar.h"

/* What fails once has failed: the rest is made all the same, and thrown away. */
struct dump {
        yaml_emitter_t emitter;
        struct text text;
};

static int append_bytes(void *userdata, unsigned char *bytes, size_t size_bytes)
{
        text_append_bytes(userdata, bytes, size_bytes);
        return 1;
}

static void emit(struct dump *dump, int made, yaml_event_t *event)
{
        dump->text.failed |= !made || !yaml_emitter_emit(&dump->emitter, event);
}

static void emit_scalar(struct dump *dump, const char *s, size_t length, yaml_scalar_style_t style)
{
        yaml_event_t event;

        emit(dump,
             yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *) s, (int) length, 1, 1,
                                          style),
             &event);
}

static void emit_string(struct dump *dump, const char *s, size_t length)
{
        yaml_scalar_style_t style = YAML_ANY_SCALAR_STYLE;

        if (yaml_scalar_needs_quotes(s))
                style = YAML_DOUBLE_QUOTED_SCALAR_STYLE;
        else if (strchr(s, '\n') != NULL)
                style = YAML_LITERAL_SCALAR_STYLE;
        emit_scalar(dump, s, length, style);
}

static void emit_number(struct dump *dump, const json_t *value)
{
        char *text = json_dumps(value, JSON_ENCODE_ANY);

        if (text == NULL)
                dump->text.failed = true;
        else
                emit_scalar(dump, text, strlen(text), YAML_PLAIN_SCALAR_STYLE);
        free(text);
}

static void emit_value(struct dump *dump, const json_t *value);

static void emit_array(struct dump *dump, const json_t *array)
{
        yaml_sequence_style_t style =
                json_array_size(array) == 0 ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE;
        yaml_event_t event;
        json_t *value;
        size_t index;

        emit(dump, yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, style), &event);
        json_array_foreach(array, index, value) emit_value(dump, value);
        emit(dump, yaml_sequence_end_event_initialize(&event), &event);
}

static void emit_object(struct dump *dump, const json_t *object)
{
        yaml_mapping_style_t style =
                json_object_size(object) == 0 ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE;
        yaml_event_t event;
        json_t *value;
        const char *key;

        emit(dump, yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, style), &event);
        json_object_foreach((json_t *) object, key, value)
        {
                emit_string(dump, key, strlen(key));
                emit_value(dump, value);
        }
        emit(dump, yaml_mapping_end_event_initialize(&event), &event);
}

static void emit_value(struct dump *dump, const json_t *value)
{
        if (json_is_object(value))
                emit_object(dump, value);
        else if (json_is_array(value))
                emit_array(dump, value);
        else if (json_is_string(value))
                emit_string(dump, json_string_value(value), json_string_length(value));
        else
                emit_number(dump, value); /* true, false and null too */
}

static void emit_document(struct dump *dump, const json_t *value)
{
        yaml_event_t event;

        emit(dump, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);
        emit(dump, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
        emit_value(dump, value);
        emit(dump, yaml_document_end_event_initialize(&event, 1), &event);
        emit(dump, yaml_stream_end_event_initialize(&event), &event);
}

char *yaml_dump(const json_t *value)
{
        struct dump dump = { .text = { 0 } };

        if (!yaml_emitter_initialize(&dump.emitter))
                return NULL;
        yaml_emitter_set_output(&dump.emitter, append_bytes, &dump.text);
        yaml_emitter_set_unicode(&dump.emitter, 1);
        yaml_emitter_set_width(&dump.emitter, -1);
        emit_document(&dump, value);
        yaml_emitter_delete(&dump.emitter);
        return text_take(&dump.text, NULL);
}
