/* An extender on a directory of its own, asked over HTTP, for the tests of what it answers; and with its
 * store in memory, for the tests of what it writes. */
#pragma once

#include "base/text.h"
#include "io/clock.h"
#include "io/http/http_client.h"
#include "scheduler-extender/extender.h"
#include "scheduler-extender/extender_internal.h"
#include "tests/support/dir_store.h"
#include "tests/support/memory_store.h"
#include "tests/support/patience.h"

#define EXTENDER_BED_INVENTORY(NAME) EXTENDER_BED_INVENTORY_OF(NAME, "regular", "H100")
#define EXTENDER_BED_INVENTORY_OF(NAME, POOL, MODEL)                                                         \
        "{\"apiVersion\":\"remuda.dev/"                                                                      \
        "v1alpha1\",\"kind\":\"NodeAccelerators\",\"metadata\":{\"name\":\"" NAME                            \
        "\"},\"status\":{\"generation\":1,\"bootID\":\"b\",\"nodeClass\":\"any\",\"pool\":\"" POOL "\","     \
        "\"devices\":[],\"groups\":[{\"name\":\"g\",\"vendor\":\"nvidia\",\"runtime\":\"cuda\",\"model\":"   \
        "\"" MODEL                                                                                           \
        "\",\"resource\":\"nvidia.com/gpu\",\"fabric\":\"none\",\"total\":8,\"healthy\":8,\"free\":0,"       \
        "\"tflopsBf16\":100,\"memoryBytes\":85899345920}]}}"
/* Of two chips. @MORE: fields of its metadata, each with a comma before it. */
#define EXTENDER_BED_POD(NAME, MORE)                                                                         \
        "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"" NAME                             \
        "\",\"namespace\":\"default\",\"uid\":\"u-" NAME "\"" MORE                                           \
        "},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{\"nvidia.com/"               \
        "gpu\":\"2\"}}}]}}"
#define EXTENDER_BED_BIND(NAME, UID, NODE)                                                                   \
        "{\"PodName\":\"" NAME "\",\"PodNamespace\":\"default\",\"PodUID\":\"" UID "\",\"Node\":\"" NODE "\"}"

struct extender_bed {
        struct dir_store *folder;
        struct extender_options options;
        struct extender *extender;
        struct memory_store *memory; /* NULL: it is on its folder */
        struct http_client *client;
        char spec[80], url[160];
        struct text said; /* what was logged, a line each */
        unsigned answers, status;
        char body[65536];
};

/* extender_bed_new() - the folder and the options: two nodes a and b of eight chips, the pods p and, an
 * emergency, q. extender_bed_open() - the extender; extender_bed_ready() - until it leads. */
struct extender_bed *extender_bed_new(void);
void extender_bed_open(struct extender_bed *b);
void extender_bed_ready(struct extender_bed *b);
void extender_bed_free(struct extender_bed *b);

/* extender_bed_to_memory() - from now on its store is the test's, empty: what was read stands in the ledger.
 * `options.server.store` names a cluster then. */
void extender_bed_to_memory(struct extender_bed *b);

/* extender_bed_begin() - all of this: one that leads, its store the test's; without q unless @any_emergency,
 * in whatever namespace. extender_bed_said() - were these words logged? */
struct extender_bed *extender_bed_begin(bool any_emergency);
bool extender_bed_said(const struct extender_bed *b, const char *words);

/* extender_bed_send() - a request, whose answer `answers` counts; extender_bed_ask() - and waits for it.
 * @body: NULL = GET. Return: its status. */
void extender_bed_send(struct extender_bed *b, const char *path, const char *body);
unsigned extender_bed_ask(struct extender_bed *b, const char *path, const char *body);

/* Runs the loop until it holds; what the store in memory has changed is told. */
#define EXTENDER_BED_WAIT(b, what)                                                                           \
        do {                                                                                                 \
                uint64_t end_ = clock_monotonic_usec() + patience_usec();                                    \
                while (!(what)) {                                                                            \
                        if (clock_monotonic_usec() > end_)                                                   \
                                fail_msg("never came: %s; said:\n%s", #what, (b)->said.data);                \
                        if ((b)->memory != NULL)                                                             \
                                memory_store_tell((b)->memory);                                              \
                        (void) sd_event_run((b)->folder->loop, 10000);                                       \
                }                                                                                            \
        } while (false)
