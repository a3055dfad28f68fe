/* A JSON value becomes events of libyaml. */
#include "base/yaml/yaml_dump.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/text.h"
#include "base/yaml/yaml_scalar.h"

static int append_bytes(void *userdata, unsigned char *bytes, size_t size_bytes)
{
        text_append_bytes(userdata, bytes, size_bytes);
        return 1;
}

static int emit(yaml_emitter_t *emitter, int made, yaml_event_t *event)
{
        return made && yaml_emitter_emit(emitter, event) ? 0 : -ENOMEM;
}

static int emit_scalar(yaml_emitter_t *emitter, const char *s, size_t length, yaml_scalar_style_t style)
{
        yaml_event_t event;

        return emit(emitter,
                    yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *) s, (int) length, 1,
                                                 1, style),
                    &event);
}

static int emit_string(yaml_emitter_t *emitter, const char *s, size_t length)
{
        yaml_scalar_style_t style = YAML_ANY_SCALAR_STYLE;

        if (yaml_scalar_needs_quotes(s))
                style = YAML_DOUBLE_QUOTED_SCALAR_STYLE;
        else if (strchr(s, '\n') != NULL)
                style = YAML_LITERAL_SCALAR_STYLE;
        return emit_scalar(emitter, s, length, style);
}

static int emit_number(yaml_emitter_t *emitter, const json_t *value)
{
        char *text = json_dumps(value, JSON_ENCODE_ANY);
        int e;

        if (text == NULL)
                return -ENOMEM;
        e = emit_scalar(emitter, text, strlen(text), YAML_PLAIN_SCALAR_STYLE);
        free(text);
        return e;
}

static int emit_value(yaml_emitter_t *emitter, const json_t *value);

static int emit_array(yaml_emitter_t *emitter, const json_t *array)
{
        yaml_sequence_style_t style =
                json_array_size(array) == 0 ? YAML_FLOW_SEQUENCE_STYLE : YAML_BLOCK_SEQUENCE_STYLE;
        yaml_event_t event;
        json_t *value;
        size_t index;
        int e = emit(emitter, yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, style), &event);

        json_array_foreach(array, index, value)
        {
                if (e == 0)
                        e = emit_value(emitter, value);
        }
        return e < 0 ? e : emit(emitter, yaml_sequence_end_event_initialize(&event), &event);
}

static int emit_object(yaml_emitter_t *emitter, const json_t *object)
{
        yaml_mapping_style_t style =
                json_object_size(object) == 0 ? YAML_FLOW_MAPPING_STYLE : YAML_BLOCK_MAPPING_STYLE;
        yaml_event_t event;
        json_t *value;
        const char *key;
        int e = emit(emitter, yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, style), &event);

        json_object_foreach((json_t *) object, key, value)
        {
                if (e == 0)
                        e = emit_string(emitter, key, strlen(key));
                if (e == 0)
                        e = emit_value(emitter, value);
        }
        return e < 0 ? e : emit(emitter, yaml_mapping_end_event_initialize(&event), &event);
}

static int emit_value(yaml_emitter_t *emitter, const json_t *value)
{
        if (json_is_object(value))
                return emit_object(emitter, value);
        if (json_is_array(value))
                return emit_array(emitter, value);
        if (json_is_string(value))
                return emit_string(emitter, json_string_value(value), json_string_length(value));
        return emit_number(emitter, value); /* true, false and null too */
}

static int emit_document(yaml_emitter_t *emitter, const json_t *value)
{
        yaml_event_t event;
        int e = emit(emitter, yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING), &event);

        if (e == 0)
                e = emit(emitter, yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1), &event);
        if (e == 0)
                e = emit_value(emitter, value);
        if (e == 0)
                e = emit(emitter, yaml_document_end_event_initialize(&event, 1), &event);
        return e < 0 ? e : emit(emitter, yaml_stream_end_event_initialize(&event), &event);
}

char *yaml_dump(const json_t *value)
{
        struct text text = { 0 };
        yaml_emitter_t emitter;
        int e;

        if (!yaml_emitter_initialize(&emitter))
                return NULL;
        yaml_emitter_set_output(&emitter, append_bytes, &text);
        yaml_emitter_set_unicode(&emitter, 1);
        yaml_emitter_set_width(&emitter, -1);
        e = emit_document(&emitter, value);
        yaml_emitter_delete(&emitter);
        if (e < 0) {
                text_free(&text);
                return NULL;
        }
        return text_take(&text, NULL);
}
