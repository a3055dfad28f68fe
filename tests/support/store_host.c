/* store-host: a store driven line by line from a test. usage: store-host SPEC KUBECONFIG|- KIND...
 *
 * Says, a line each: "synced KIND", "changed KIND KEY NODE" (a pod's; "-" without one), "gone KIND KEY",
 * "trouble KIND SENTENCE", "answer NUMBER RESULT SENTENCE" (to the NUMBERth command), "leading yes|no
 * HOLDER". Reads: "bind NS NAME UID NODE", "evict NS NAME UID", "delete KIND NS NAME", "put KIND NS NAME
 * JSON", "patch KIND NS NAME JSON", "create KIND NS JSON", "event KIND NS NAME UID REASON", "age", "lease
 * NAME IDENTITY", "observe MODEL DEVICE BATCH MS" (of the SpeedTable), "quit". */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/loop.h"
#include "store/lease.h"
#include "store/speed_store.h"
#include "store/store.h"

#define LINE_BYTES 65536

struct host {
        sd_event *loop;
        struct store *store;
        struct lease *lease;
        const char *kubeconfig;
        char buffer[LINE_BYTES];
        size_t filled;
        long commands;
};

struct ticket {
        long number;
};

static void on_changed(void *userdata, enum store_kind kind, const char *key, const json_t *object)
{
        const char *node = json_string_value(json_object_get(json_object_get(object, "spec"), "nodeName"));

        (void) userdata;
        if (object == NULL)
                printf("gone %s %s\n", store_kind_name(kind), key);
        else
                printf("changed %s %s %s\n", store_kind_name(kind), key, node != NULL ? node : "-");
}

static void on_synced(void *userdata, enum store_kind kind)
{
        (void) userdata;
        printf("synced %s\n", store_kind_name(kind));
}

static void on_trouble(void *userdata, enum store_kind kind, const char *sentence)
{
        (void) userdata;
        printf("trouble %s %s\n", store_kind_name(kind), sentence);
}

static void on_leading(void *userdata, bool leading, const char *holder)
{
        (void) userdata;
        printf("leading %s %s\n", leading ? "yes" : "no", holder);
}

static void on_answer(void *userdata, int result, const char *sentence)
{
        struct ticket *ticket = userdata;

        printf("answer %ld %d %s\n", ticket->number, result, sentence);
        free(ticket);
}

static char *word(char **rest)
{
        char *w = *rest;
        size_t length = strcspn(w, " ");

        *rest = w[length] == ' ' ? w + length + 1 : w + length;
        w[length] = '\0';
        return w;
}

static void begin_lease(struct host *h, char *name, char *identity)
{
        struct lease_options options = { .kubeconfig = h->kubeconfig,
                                         .namespace_ = "default",
                                         .name = name,
                                         .identity = identity,
                                         .duration_sec = 3,
                                         .renew_sec = 2,
                                         .retry_sec = 1,
                                         .changed = on_leading,
                                         .userdata = h };
        struct err err = { 0 };

        if (lease_open(h->loop, &options, &h->lease, &err) < 0)
                printf("trouble Lease %s\n", err.msg);
}

static void with_json(struct host *h, const char *verb, char *rest, struct ticket *ticket)
{
        enum store_kind kind = STORE_POD;
        char *name = NULL, *namespace_;
        json_t *json;

        (void) store_kind_parse(word(&rest), &kind);
        namespace_ = word(&rest);
        if (strcmp(verb, "create") != 0)
                name = word(&rest);
        json = json_loads(rest, 0, NULL);
        if (strcmp(verb, "put") == 0)
                store_put(h->store, kind, namespace_, name, json, on_answer, ticket);
        else if (strcmp(verb, "patch") == 0)
                store_patch(h->store, kind, namespace_, name, json, on_answer, ticket);
        else
                store_create(h->store, kind, namespace_, json, on_answer, ticket);
        json_decref(json);
}

static void about_pod(struct host *h, const char *verb, char *rest, struct ticket *ticket)
{
        char *namespace_ = word(&rest), *name = word(&rest), *uid = word(&rest);

        if (strcmp(verb, "bind") == 0)
                store_bind(h->store, &(struct store_binding){ namespace_, name, uid, word(&rest), NULL },
                           on_answer, ticket);
        else
                store_evict(h->store, namespace_, name, uid, 0, on_answer, ticket);
}

static void delete_object(struct host *h, char *rest, struct ticket *ticket)
{
        enum store_kind kind = STORE_POD;
        char *namespace_, *name;

        (void) store_kind_parse(word(&rest), &kind);
        namespace_ = word(&rest);
        name = word(&rest);
        store_delete(h->store, kind, namespace_, name, NULL, 0, on_answer, ticket);
}

static void say_event(struct host *h, char *rest)
{
        struct store_event event = { .type = "Warning", .message = "said by a test" };

        event.object_kind = word(&rest);
        event.namespace_ = word(&rest);
        if (strcmp(event.namespace_, "-") == 0)
                event.namespace_ = NULL;
        event.name = word(&rest);
        event.uid = word(&rest);
        event.reason = word(&rest);
        store_event(h->store, &event);
}

static void observe(struct host *h, char *rest, struct ticket *ticket)
{
        struct speed_table_observation seen = { .weight = 1 };

        seen.model = word(&rest);
        seen.device = word(&rest);
        seen.batch = strtod(word(&rest), NULL);
        seen.step_ms = strtod(word(&rest), NULL);
        speed_store_refine(h->store, &seen, 1, on_answer, ticket);
}

static void obey(struct host *h, char *line)
{
        char *rest = line, *verb = word(&rest);
        struct ticket *ticket = malloc(sizeof(*ticket));

        if (ticket == NULL)
                abort();
        ticket->number = ++h->commands;
        if (strcmp(verb, "bind") == 0 || strcmp(verb, "evict") == 0)
                about_pod(h, verb, rest, ticket);
        else if (strcmp(verb, "delete") == 0)
                delete_object(h, rest, ticket);
        else if (strcmp(verb, "observe") == 0)
                observe(h, rest, ticket);
        else if (strcmp(verb, "put") == 0 || strcmp(verb, "patch") == 0 || strcmp(verb, "create") == 0)
                with_json(h, verb, rest, ticket);
        else {
                free(ticket);
                if (strcmp(verb, "event") == 0)
                        say_event(h, rest);
                else if (strcmp(verb, "age") == 0)
                        printf("age %llu\n", (unsigned long long) store_age_usec(h->store, STORE_ALL_KINDS,
                                                                                 loop_now_usec(h->loop)));
                else if (strcmp(verb, "lease") == 0) {
                        char *name = word(&rest);

                        begin_lease(h, name, word(&rest));
                } else
                        (void) sd_event_exit(h->loop, 0);
        }
}

static int on_input(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct host *h = userdata;
        ssize_t n = read(fd, h->buffer + h->filled, sizeof(h->buffer) - h->filled - 1);
        char *end;

        (void) source;
        (void) events;
        if (n <= 0)
                return sd_event_exit(h->loop, 0);
        h->filled += (size_t) n;
        h->buffer[h->filled] = '\0';
        while ((end = memchr(h->buffer, '\n', h->filled)) != NULL) {
                size_t used = (size_t) (end - h->buffer) + 1;

                *end = '\0';
                obey(h, h->buffer);
                h->filled -= used;
                memmove(h->buffer, h->buffer + used, h->filled + 1);
        }
        return 0;
}

int main(int argc, char **argv)
{
        static struct host h;
        struct store_options options = {
                .changed = on_changed, .synced = on_synced, .trouble = on_trouble, .userdata = &h
        };
        struct err err = { 0 };

        if (argc < 3)
                return 2;
        (void) setvbuf(stdout, NULL, _IOLBF, 0);
        options.spec = argv[1];
        options.kubeconfig = h.kubeconfig = strcmp(argv[2], "-") == 0 ? NULL : argv[2];
        for (int i = 3; i < argc; i++) {
                enum store_kind kind;

                if (store_kind_parse(argv[i], &kind) < 0)
                        return 2;
                options.kinds |= 1u << kind;
        }
        if (loop_new(&h.loop, &err) < 0 || store_open(h.loop, &options, &h.store, &err) < 0 ||
            sd_event_add_io(h.loop, NULL, 0, EPOLLIN, on_input, &h) < 0) {
                fprintf(stderr, "store-host: %s\n", err.msg);
                return 1;
        }
        (void) loop_run(h.loop);
        lease_close(h.lease);
        store_close(h.store);
        sd_event_unref(h.loop);
        return 0;
}
