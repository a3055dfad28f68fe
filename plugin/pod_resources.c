/* Pod resources: one request at a time, and the answer sorted by device. */
#include "plugin/pod_resources.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/pb.h"
#include "base/text.h"
#include "io/clock.h"
#include "io/grpc/grpc_client.h"
#include "io/loop.h"
#include "plugin/pod_resources.pb-c.h"

#define LIST_METHOD          "/v1.PodResourcesLister/List"
#define ANSWER_MAX_BYTES     ((size_t) 32 << 20) /* busy nodes answer more than grpc-go's 4 MiB */
#define ANSWER_ARENA_BYTES   ((size_t) 256 << 20)
#define REQUEST_TIMEOUT_USEC ((uint64_t) 10000000)
#define POKE_USEC            ((uint64_t) 500000) /* a grant is visible there a moment later */
#define REQUEST_USEC         ((uint64_t) 100000)
#define HOLDERS_MAX          ((size_t) 262144)
#define DEFAULT_PERIOD_USEC  ((uint64_t) 10000000)

struct pod_resources {
        sd_event *loop;
        sd_event_source *timer;
        struct grpc_client *client;
        struct grpc_client_call *call;
        uint64_t period_usec;
        bool poked; /* while a request was open: send one more */
        struct holder *holders;
        size_t count;
        uint64_t asked_usec;
        char trouble[GRPC_SENTENCE_BYTES];
        void (*on_change)(void *userdata), (*on_trouble)(void *userdata);
        void *userdata;
};

/* The answer being put together. */
struct collecting {
        struct holder *holders;
        size_t count, capacity;
};

static int compare_holders(const void *a, const void *b)
{
        const struct holder *x = a, *y = b;
        int order = strcmp(x->device_id, y->device_id);

        if (order == 0)
                order = strcmp(x->resource, y->resource);
        if (order == 0)
                order = strcmp(x->pod_namespace, y->pod_namespace);
        if (order == 0)
                order = strcmp(x->pod, y->pod);
        return order != 0 ? order : strcmp(x->container, y->container);
}

static int collect_one(struct collecting *g, const PodResources__PodResources *pod, const char *container,
                       const char *resource, const char *id)
{
        struct holder *holder;
        char *mark = NULL;

        if (g->count == HOLDERS_MAX)
                return -E2BIG;
        holder = array_add(&g->holders, &g->count, &g->capacity, sizeof(*holder));
        if (holder == NULL)
                return -ENOMEM;
        holder->shares = 1;
        (void) text_copy(holder->device_id, sizeof(holder->device_id), id);
        for (char *p = strstr(holder->device_id, "::"); p != NULL; p = strstr(p + 1, "::"))
                mark = p;
        if (mark != NULL)
                memset(mark, 0, strlen(mark)); /* holders are compared as bytes */
        (void) text_copy(holder->resource, sizeof(holder->resource), resource);
        (void) text_copy(holder->pod_namespace, sizeof(holder->pod_namespace), pod->namespace_);
        (void) text_copy(holder->pod, sizeof(holder->pod), pod->name);
        (void) text_copy(holder->container, sizeof(holder->container), container);
        return 0;
}

static int collect_container(struct collecting *g, const PodResources__PodResources *pod,
                             const PodResources__ContainerResources *container)
{
        /* one resource may come in several parts, one for each NUMA node */
        for (size_t i = 0; i < container->n_devices; i++)
                for (size_t j = 0; j < container->devices[i]->n_device_ids; j++) {
                        int r = collect_one(g, pod, container->name, container->devices[i]->resource_name,
                                            container->devices[i]->device_ids[j]);

                        if (r < 0)
                                return r;
                }
        return 0;
}

/* Replicas of one device in one container are one holder with several shares. */
static void merge(struct collecting *g)
{
        size_t n = 0;

        if (g->count > 0)
                qsort(g->holders, g->count, sizeof(*g->holders), compare_holders);
        for (size_t i = 0; i < g->count; i++)
                if (n > 0 && compare_holders(&g->holders[n - 1], &g->holders[i]) == 0)
                        g->holders[n - 1].shares++;
                else
                        g->holders[n++] = g->holders[i];
        g->count = n;
}

static int collect(const uint8_t *message, size_t size, struct collecting *g)
{
        PodResources__ListResponse *response;
        struct pb_arena arena;
        int r = 0;

        pb_arena_init(&arena, ANSWER_ARENA_BYTES);
        response = pb_unpack(&arena, &pod_resources__list_response__descriptor, message, size);
        if (response == NULL)
                r = -EBADMSG;
        for (size_t i = 0; r == 0 && i < response->n_pod_resources; i++)
                for (size_t j = 0; r == 0 && j < response->pod_resources[i]->n_containers; j++)
                        r = collect_container(g, response->pod_resources[i],
                                              response->pod_resources[i]->containers[j]);
        pb_arena_free(&arena);
        return r;
}

static void set_trouble(struct pod_resources *pods, const char *sentence)
{
        if (strcmp(pods->trouble, sentence) == 0)
                return;
        (void) text_copy(pods->trouble, sizeof(pods->trouble), sentence);
        if (pods->on_trouble != NULL)
                pods->on_trouble(pods->userdata);
}

static void on_message(void *userdata, const uint8_t *message, size_t size)
{
        struct pod_resources *pods = userdata;
        struct collecting g = { 0 };
        int r = collect(message, size, &g);
        bool change;

        if (r < 0) {
                free(g.holders);
                set_trouble(pods, "the pod-resources answer cannot be read");
                return;
        }
        merge(&g);
        change = g.count != pods->count ||
                 (g.count > 0 && memcmp(g.holders, pods->holders, g.count * sizeof(*g.holders)) != 0);
        free(pods->holders);
        pods->holders = g.holders;
        pods->count = g.count;
        pods->asked_usec = clock_monotonic_usec();
        set_trouble(pods, "");
        if (change && pods->on_change != NULL)
                pods->on_change(pods->userdata);
}

static void on_done(void *userdata, enum grpc_status status, const char *sentence)
{
        struct pod_resources *pods = userdata;
        char why[GRPC_SENTENCE_BYTES];

        pods->call = NULL;
        (void) text_format(why, sizeof(why), "pod-resources (%s): %s", grpc_status_name(status), sentence);
        if (status != GRPC_OK)
                set_trouble(pods, why);
        loop_rearm(pods->timer, pods->poked ? POKE_USEC : pods->period_usec);
        pods->poked = false;
}

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
        struct pod_resources *pods = userdata;
        struct grpc_client_handlers handlers = { .on_message = on_message,
                                                 .on_done = on_done,
                                                 .userdata = pods };

        (void) source;
        (void) usec;
        if (pods->call == NULL && grpc_client_call(pods->client, LIST_METHOD, NULL, 0, REQUEST_TIMEOUT_USEC,
                                                   &handlers, &pods->call) < 0)
                loop_rearm(pods->timer, pods->period_usec);
        return 0;
}

static void request_within(struct pod_resources *pods, uint64_t delay_usec)
{
        uint64_t due = UINT64_MAX;

        if (pods->call != NULL) {
                pods->poked = true;
                return;
        }
        (void) sd_event_source_get_time(pods->timer, &due);
        if (due > clock_monotonic_usec() + delay_usec)
                loop_rearm(pods->timer, delay_usec);
}

void pod_resources_poke(struct pod_resources *pods)
{
        request_within(pods, POKE_USEC);
}

void pod_resources_request(struct pod_resources *pods)
{
        uint64_t now = clock_monotonic_usec();

        request_within(pods,
                       pods->asked_usec + REQUEST_USEC > now ? pods->asked_usec + REQUEST_USEC - now : 0);
}

int pod_resources_new(sd_event *loop, const struct pod_resources_options *options, struct pod_resources **ret,
                      struct err *err)
{
        const char *socket = options->socket == NULL ? POD_RESOURCES_SOCKET : options->socket;
        struct pod_resources *pods = calloc(1, sizeof(*pods));
        char address[160];
        struct grpc_client_options client = { .address = address, .message_max_bytes = ANSWER_MAX_BYTES };
        int r;

        if (pods == NULL)
                return err_set(err, -ENOMEM, "no memory for pod-resources");
        pods->loop = sd_event_ref(loop);
        pods->period_usec = options->period_usec == 0 ? DEFAULT_PERIOD_USEC : options->period_usec;
        pods->on_change = options->on_change;
        pods->on_trouble = options->on_trouble;
        pods->userdata = options->userdata;
        (void) text_format(address, sizeof(address), "unix:%s", socket);
        r = grpc_client_new(loop, &client, &pods->client, err);
        if (r >= 0) {
                r = sd_event_add_time_relative(loop, &pods->timer, CLOCK_MONOTONIC, 0, 100000, on_timer,
                                               pods);
                if (r < 0)
                        (void) err_set(err, r, "pod-resources: %s", strerror(-r));
        }
        if (r < 0) {
                pod_resources_free(pods);
                return r;
        }
        *ret = pods;
        return 0;
}

void pod_resources_free(struct pod_resources *pods)
{
        if (pods == NULL)
                return;
        grpc_client_free(pods->client);
        (void) sd_event_source_disable_unref(pods->timer);
        (void) sd_event_unref(pods->loop);
        free(pods->holders);
        free(pods);
}

size_t pod_resources_holders(const struct pod_resources *pods, const struct holder **ret,
                             uint64_t *ret_asked_usec)
{
        *ret = pods->holders;
        if (ret_asked_usec != NULL)
                *ret_asked_usec = pods->asked_usec;
        return pods->count;
}

const char *pod_resources_trouble(const struct pod_resources *pods)
{
        return pods->trouble;
}

static unsigned shares_held(const struct pod_resources *pods, const char *id, const char *resource)
{
        unsigned shares = 0;

        for (size_t i = 0; i < pods->count; i++)
                if (strcmp(pods->holders[i].device_id, id) == 0 &&
                    strcmp(pods->holders[i].resource, resource) == 0)
                        shares += pods->holders[i].shares;
        return shares;
}

void pod_resources_count_free(const struct pod_resources *pods, struct inventory *inventory)
{
        for (size_t i = 0; i < inventory->group_count; i++)
                inventory->groups[i].free = 0;
        for (size_t i = 0; i < inventory->device_count; i++) {
                const struct device *device = &inventory->devices[i];
                struct device_group *group =
                        device->group[0] == '\0' ? NULL : inventory_find_group(inventory, device->group);

                if (group != NULL && device->usable &&
                    shares_held(pods, device->id, group->resource) < (group->shares > 1 ? group->shares : 1))
                        group->free++;
        }
}
