/* A sequence of watch events about four names, good ones and odd ones: after each the store's user knows
 * exactly what a simple model says, an object of another uid went before the new one came, and what is no
 * event asks for a new list. Every byte is one step: three bits what happens, two which name, three its uid
 * and oddity. */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "io/loop.h"
#include "store/kubernetes/reflector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define NAMES 4

static int truth[NAMES], told[NAMES]; /* the uid of each, 0 = there is none */

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        int *at = &told[key[strlen("default/")] - 'a'];
        const char *uid = json_string_value(json_object_get(json_object_get(object, "metadata"), "uid"));

        (void) userdata;
        (void) kind;
        if (object == NULL ? *at == 0 : uid == NULL || (*at != 0 && *at != uid[0]))
                abort(); /* gone without having been, or another one in the place of one that is still there
                          */
        *at = object == NULL ? 0 : uid[0];
}

static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        (void) userdata;
        (void) kind;
        (void) sentence;
}

static void step(struct reflector *r, uint8_t byte, unsigned version)
{
        static const char *const types[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK",
                                             "ERROR", "MODIFIED", "",        "ADDED" };
        static const char *const odd[] = { "\"plain\"", "\"\\u0000\"", "100000000000000000000", "1e400" };
        const char *type = types[byte & 7];
        int name = (byte >> 3) & 3, uid = 'u' + ((byte >> 5) & 1), e;
        bool named = strcmp(type, "BOOKMARK") != 0 && strcmp(type, "ERROR") != 0 && type[0] != '\0';
        struct err err = { 0 };
        char line[256];

        (void) text_format(line, sizeof(line),
                           "{\"type\":\"%s\",\"object\":{\"code\":410,\"metadata\":{\"namespace\":"
                           "\"default\",\"name\":\"%c\",\"uid\":"
                           "\"%c\",\"resourceVersion\":\"%u\"},\"odd\":%s}%s",
                           type, 'a' + name, uid, version, odd[byte >> 6], type[0] == '\0' ? "" : "}");
        e = reflector_take_line(r, line, strlen(line), &err);
        if (e != (strcmp(type, "ERROR") == 0 ? -ESTALE
                  : type[0] == '\0'          ? -EBADMSG
                                             : 0) ||
            (e < 0 && err.msg[0] == '\0'))
                abort();
        if (named)
                truth[name] = strcmp(type, "DELETED") == 0 ? 0 : uid;
        if (memcmp(truth, told, sizeof(truth)) != 0)
                abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static sd_event *loop;
        struct store store = {
                .options = { .changed = on_changed, .trouble = on_trouble, .kinds = 1u << STORE_POD }
        };
        struct reflector r = { .store = &store, .kind = STORE_POD };

        if (loop == NULL && loop_new(&loop, NULL) < 0)
                abort();
        store.loop = loop;
        memset(truth, 0, sizeof(truth));
        memset(told, 0, sizeof(told));
        for (size_t i = 0; i < size; i++)
                step(&r, data[i], (unsigned) i + 1);
        reflector_stop(&r);
        return 0;
}
