/* The annotation is an object of JSON, by a table both ways. */
#include "job/controller/job_keys.h"

#include <jansson.h>
#include <string.h>

#include "base/json/json_table.h"

#define AT(member) JSON_TABLE_AT(struct job_keys, member)
static const struct json_table_row key_rows[] = {
        { "secret", JSON_TABLE_CHARS, AT(secret) },
        { "ca", JSON_TABLE_STRING, AT(ca) },
        { .name = NULL },
};
static const struct json_table key_table = { .rows = key_rows,
                                             .size_bytes = sizeof(struct job_keys),
                                             .lenient = true };
#undef AT

char *job_keys_write(const struct job_keys *keys)
{
        json_t *object = json_table_encode(&key_table, keys);
        char *text = json_dumps(object, JSON_COMPACT);

        json_decref(object);
        return text;
}

struct job_keys job_keys_read(const char *text)
{
        json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        struct job_keys keys = { .secret = "" };

        (void) json_table_decode(&key_table, object, &keys, NULL);
        json_decref(object);
        return keys;
}

void job_keys_free(struct job_keys *keys)
{
        json_table_free(&key_table, keys);
}

void job_keys_secret(const char *text, char name[JOB_POD_NAME_BYTES])
{
        struct job_keys keys = job_keys_read(text);

        memcpy(name, keys.secret, JOB_POD_NAME_BYTES);
        job_keys_free(&keys);
}
