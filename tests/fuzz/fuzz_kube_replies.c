/* Any bytes as an API server's reply: lists, watch lines cut anywhere, error bodies. Never a crash; objects
 * that were announced as gone were there before. The first byte chooses what the rest is. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "io/loop.h"
#include "store/kubernetes/reflector.h"

/* In two pieces: what is between them is nobody's affair. */
static int take_list(struct reflector *r, const char *bytes, size_t size, struct err *err)
{
        size_t first = size > 0 ? (unsigned char) bytes[size / 2] % (size + 1) : 0;
        int e;

        json_feed_begin(&r->page, 1 << 20);
        e = reflector_take_page(r, bytes, first, err);
        e = e == 0 ? reflector_take_page(r, bytes + first, size - first, err) : e;
        return e == 0 ? reflector_end_page(r, err) : e;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t known;

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        (void) userdata;
        (void) kind;
        if (key[0] == '\0' || (object == NULL && known == 0))
                abort();
        known = object != NULL ? known + 1 : known; /* an upper bound: changes count again */
}

static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        (void) userdata;
        (void) kind;
        if (sentence[0] == '\0')
                abort();
}

static void take_lines(struct reflector *r, const char *bytes, size_t size)
{
        while (size > 0) {
                const char *end = memchr(bytes, '\n', size);
                size_t part = end != NULL ? (size_t) (end - bytes) : size;
                struct err err = { 0 };

                if (reflector_take_line(r, bytes, part, &err) < 0 && err.msg[0] == '\0')
                        abort();
                bytes += part + (end != NULL);
                size -= part + (end != NULL);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static sd_event *loop;
        struct store store = { 0 };
        struct reflector reflector = { .store = &store }, *r = &reflector;
        struct err err = { 0 };
        char sentence[100];
        const char *bytes = (const char *) data + 1;

        if (size < 1)
                return 0;
        if (loop == NULL && loop_new(&loop, &err) < 0)
                abort();
        known = 0;
        store.loop = loop;
        store.options.changed = on_changed;
        store.options.trouble = on_trouble;
        store.options.kinds = (1u << STORE_KIND_COUNT) - 1;
        r->kind = (enum store_kind)(data[0] % STORE_KIND_COUNT);
        size--;
        if (data[0] < 85 && take_list(r, bytes, size, &err) < 0 && err.msg[0] == '\0')
                abort();
        else if (data[0] >= 85 && data[0] < 170)
                take_lines(r, bytes, size);
        else if (data[0] >= 170) {
                struct http_call_result result = { .status = data[0] * 3u,
                                                   .body = bytes,
                                                   .body_bytes = size };

                if (kube_result(&result, sentence, sizeof(sentence)) != 0 && sentence[0] == '\0')
                        abort();
        }
        reflector_stop(r);
        return 0;
}
