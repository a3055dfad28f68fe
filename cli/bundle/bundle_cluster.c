/* One request after the other; each that fails is a line of what is missing. */
#include "cli/bundle/bundle_cluster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/version.h"
#include "cli/bundle/bundle_node.h"
#include "cli/bundle/bundle_prune.h"
#include "cli/bundle/bundle_store.h"
#include "cli/command/exchange.h"
#include "cli/command/metrics_port.h"
#include "io/clock.h"
#include "io/loop.h"
#include "store/kubernetes/kube.h"
#include "store/kubernetes/kube_reach.h"
#include "store/kubernetes/port_forward.h"
#include "store/store.h"

#define FOLDER    "cluster"
#define LIST_USEC (BUNDLE_SOURCE_USEC - LOOK_USEC)
#define LOOK_USEC UINT64_C(1000000) /* is the API server there? */
#define PART_OF   "labelSelector=app.kubernetes.io%2Fpart-of%3Dremuda&"
/* Pods have the labels of their templates, and those are no more than what selects them: app.kubernetes.io/
 * name in (remuda-agent,remuda-scheduler,remuda-controller). */
#define PROGRAMS                                                                                             \
        "labelSelector=app.kubernetes.io%2Fname+in+%28remuda-agent%2Cremuda-scheduler%2Cremuda-controller%"  \
        "29&"
#define PATH_BYTES 1024

struct look {
        struct bundle *bundle;
        const struct bundle_cluster_options *options;
        struct exchange exchange;
        struct kube_client *client;
        json_t *silent; /* nodes whose kubelet does not answer */
        uint64_t until_usec;
        bool gone; /* nothing more is asked of the API server */
        bool interrupted;
        unsigned status; /* of the last reply, 0 = there was none */
        bool mute;       /* who explains does not answer */
};

/* Return: 0: x->exchange.result has the reply; else a negative errno, and why. */
static int call(struct look *x, const char *path, size_t max_bytes, uint64_t usec, char why[300])
{
        const struct kube_request request = { .method = "GET",
                                              .path = path,
                                              .reply_max_bytes = max_bytes,
                                              .timeout_usec = usec,
                                              .deadline_usec = usec,
                                              .done = exchange_done,
                                              .userdata = &x->exchange };
        struct err err = { 0 };

        if (kube_call_start(x->client, &request, NULL) < 0) {
                (void) text_copy(why, 300, "no memory");
                return -ENOMEM;
        }
        if (exchange_await(&x->exchange, &err) < 0) {
                x->interrupted = true;
                return -EINTR;
        }
        return kube_result(&x->exchange.result, why, 300);
}

static bool may_ask(struct look *x, const char *source)
{
        if (x->interrupted)
                return false;
        if (!x->gone && clock_monotonic_usec() < x->until_usec)
                return true;
        bundle_miss(x->bundle, source,
                    x->gone ? "the API server does not answer any more" : "there was no time left");
        return false;
}

/* Return: true: the reply is there; else it is missing, and that is said. */
static bool get(struct look *x, const char *path, const char *source)
{
        char why[300] = "", version_why[300];
        int r;

        if (!may_ask(x, source))
                return false;
        r = call(x, path, BUNDLE_FILE_BYTES, LIST_USEC, why);
        x->status = x->exchange.result.status;
        if (r < 0 && !x->interrupted) {
                bundle_miss(x->bundle, source, "%s", why);
                if (x->status == 0)
                        x->gone = call(x, "/version", 1 << 20, LOOK_USEC, version_why) < 0 &&
                                  x->exchange.result.status == 0;
        }
        return r == 0;
}

static json_t *get_json(struct look *x, const char *path, const char *source)
{
        struct err err = { 0 };
        json_t *value;

        if (!get(x, path, source))
                return NULL;
        value = json_read(x->exchange.result.body, x->exchange.result.body_bytes, 0, &err);
        if (value == NULL)
                bundle_miss(x->bundle, source, "%s", err.msg);
        return value;
}

struct listing {
        const char *name;                   /* of the file */
        const char *group, *plural, *query; /* of the collection */
        json_t *(*prune)(const json_t *object);
};

/* clang-format off */
static const struct listing of_cluster[] = {
        { "nodeaccelerators.json", "/apis/remuda.dev/v1alpha1", "nodeaccelerators", "", bundle_prune_other },
        { "speedtables.json", "/apis/remuda.dev/v1alpha1", "speedtables", "", bundle_prune_other },
        { "nodes.json", "/api/v1", "nodes", "", bundle_prune_node },
        { "node-events.json", "/api/v1", "events", "fieldSelector=involvedObject.kind%3DNode&", bundle_prune_event },
};
/* Of ours, in the namespace where our programs are: a label is anybody's to set on what is his own. */
static const struct listing of_ours[] = {
        { "deployments.json", "/apis/apps/v1", "deployments", PART_OF, bundle_prune_workload },
        { "daemonsets.json", "/apis/apps/v1", "daemonsets", PART_OF, bundle_prune_workload },
        { "configmaps.json", "/api/v1", "configmaps", PART_OF, bundle_prune_other },
        { "leases.json", "/apis/coordination.k8s.io/v1", "leases", "", bundle_prune_other },
}, our_pods = { "pods.json", "/api/v1", "pods", PROGRAMS, bundle_prune_pod };
/* clang-format on */

/* A list becomes a file. @namespace_: NULL = all. Return: the list, a new reference, or NULL. */
static json_t *take_list(struct look *x, const struct listing *listing, const char *namespace_)
{
        char path[PATH_BYTES], source[BUNDLE_NAME_BYTES];
        json_t *list;

        (void) text_format(path, sizeof(path), "%s%s%s/%s?%slimit=%d", listing->group,
                           namespace_ == NULL ? "" : "/namespaces/", namespace_ == NULL ? "" : namespace_,
                           listing->plural, listing->query, BUNDLE_CLUSTER_OBJECTS_MAX);
        (void) text_format(source, sizeof(source), FOLDER "/%s", listing->name);
        list = get_json(x, path, source);
        if (list != NULL)
                bundle_add_json(x->bundle, FOLDER, BUNDLE_PARTS(listing->name),
                                bundle_prune_list(list, listing->prune));
        return list;
}

static void take_log(struct look *x, const json_t *pod, const char *container, bool previous)
{
        const char *namespace_ = json_read_word(json_object_get(pod, "metadata"), "namespace"),
                   *name = json_read_word(json_object_get(pod, "metadata"), "name"),
                   *node = json_read_word(json_object_get(pod, "spec"), "nodeName");
        char path[PATH_BYTES], source[PATH_BYTES];

        (void) text_format(source, sizeof(source), "log of %s/%s/%s%s", namespace_, name, container,
                           previous ? " before its restart" : "");
        if (!kube_name_is_safe(namespace_) || !kube_name_is_safe(name) || !kube_name_is_safe(container)) {
                bundle_miss(x->bundle, source, "its name is none");
        } else if (json_object_get(x->silent, node) != NULL) {
                bundle_miss(x->bundle, source, "the kubelet of node %s did not answer before", node);
        } else if (text_format(path, sizeof(path),
                               "/api/v1/namespaces/%s/pods/%s/log?container=%s&tailLines=%d&limitBytes=%d%s",
                               namespace_, name, container, BUNDLE_CLUSTER_LOG_LINES,
                               BUNDLE_CLUSTER_LOG_BYTES, previous ? "&previous=true" : "")) {
                if (get(x, path, source))
                        bundle_add_bytes(
                                x->bundle, "logs",
                                BUNDLE_PARTS(namespace_, name, container, previous ? "previous.txt" : "txt"),
                                x->exchange.result.body, x->exchange.result.body_bytes);
                else if (x->status == 0 || x->status >= 500)
                        (void) json_object_set_new(x->silent, node, json_true());
        }
}

static void take_logs(struct look *x, const json_t *pod)
{
        const json_t *statuses = json_object_get(json_object_get(pod, "status"), "containerStatuses"),
                     *status;
        size_t i;

        json_array_foreach(statuses, i, status)
        {
                const char *name = json_string_value(json_object_get(status, "name"));

                if (name == NULL)
                        continue;
                if (json_integer_value(json_object_get(status, "restartCount")) > 0)
                        take_log(x, pod, name, true);
                take_log(x, pod, name, false);
        }
}

/* @socket: that leads there, or NULL. Return: did it answer at all? */
static bool ask_page(struct look *x, const char *address, const char *socket, const char *path, uint64_t usec,
                     const char *const *parts)
{
        char url[300], source[500];
        const struct http_client_options options = { .base_url = url,
                                                     .unix_socket = socket,
                                                     .user_agent = "remuda/" REMUDA_VERSION " (linux)" };
        const struct http_call_options page = { .method = "GET",
                                                .path = path,
                                                .timeout_usec = usec,
                                                .reply_max_bytes = BUNDLE_FILE_BYTES,
                                                .done = exchange_done,
                                                .userdata = &x->exchange };
        struct http_client *client = NULL;
        struct err err = { 0 };
        bool answered = false;

        (void) text_format(url, sizeof(url), "http://%s", address);
        (void) text_format(source, sizeof(source), "%s of %s", path, parts[0]);
        if (http_client_new(x->exchange.loop, &options, &client, &err) < 0 ||
            http_call_start(client, &page, NULL) < 0) {
                bundle_miss(x->bundle, source, "%s", err.msg[0] == '\0' ? "no memory" : err.msg);
        } else if (exchange_await(&x->exchange, &err) < 0) {
                x->interrupted = true;
        } else if (x->exchange.result.error < 0) {
                bundle_miss(x->bundle, source, "%s", x->exchange.result.sentence);
        } else { /* readiness is told by a status of 503, too */
                answered = true;
                bundle_add_bytes(x->bundle, "programs", parts, x->exchange.result.body,
                                 x->exchange.result.body_bytes);
        }
        http_client_free(client);
        return answered;
}

/* Return: did it answer? */
static bool take_page_of_pod(struct look *x, const json_t *pod, unsigned port, const char *page,
                             const char *name)
{
        const char *namespace_ = json_read_word(json_object_get(pod, "metadata"), "namespace"),
                   *pod_name = json_read_word(json_object_get(pod, "metadata"), "name");
        char address[64], socket[PORT_FORWARD_NAME_BYTES], source[500];
        struct port_forward *forward = NULL;
        struct err err = { 0 };
        bool answered = false;

        (void) text_format(source, sizeof(source), "%s of %s/%s", page, namespace_, pod_name);
        (void) text_format(address, sizeof(address), "127.0.0.1:%u", port);
        if (!may_ask(x, source))
                return false;
        if (!kube_name_is_safe(namespace_) || !kube_name_is_safe(pod_name))
                bundle_miss(x->bundle, source, "its name is none");
        else if (port_forward_open(x->exchange.loop, x->client,
                                   &(struct port_forward_target){ namespace_, pod_name, port },
                                   BUNDLE_SOURCE_USEC / 2, &forward, socket, &err) < 0)
                bundle_miss(x->bundle, source, "%s", err.msg);
        else
                answered = ask_page(x, address, socket, page, BUNDLE_SOURCE_USEC / 2,
                                    BUNDLE_PARTS(namespace_, pod_name, name));
        port_forward_close(forward);
        return answered;
}

static void take_pages(struct look *x, const json_t *pod)
{
        unsigned port = metrics_port(pod);

        if (port == 0 || strcmp(json_read_word(json_object_get(pod, "status"), "phase"), "Running") != 0)
                return;
        if (take_page_of_pod(x, pod, port, "/readyz", "readyz.txt"))
                (void) take_page_of_pod(x, pod, port, "/metrics", "metrics.txt");
}

/* A pod of the agent's is one of as many as there are nodes: the others come first. */
static bool is_of_every_node(const json_t *pod)
{
        const json_t *owner =
                json_array_get(json_object_get(json_object_get(pod, "metadata"), "ownerReferences"), 0);
        const char *kind = json_string_value(json_object_get(owner, "kind"));

        return kind != NULL && strcmp(kind, "DaemonSet") == 0;
}

static void take_our_pods(struct look *x)
{
        const char *namespace_ = x->options->ask->namespace_;
        json_t *list = take_list(x, &our_pods, namespace_), *pod;
        size_t i, taken = 0;

        if (list != NULL && json_array_size(json_object_get(list, "items")) == 0)
                bundle_miss(x->bundle, "pods of ours",
                            "there are none in namespace %s: --extender-namespace says where Remuda runs",
                            namespace_);
        for (unsigned every = 0; every < 2; every++)
                json_array_foreach(json_object_get(list, "items"), i, pod)
                {
                        if (is_of_every_node(pod) != (every == 1))
                                continue;
                        if (taken++ >= BUNDLE_CLUSTER_PODS_MAX) {
                                bundle_miss(x->bundle, "logs and pages of more pods", "those of %d are here",
                                            BUNDLE_CLUSTER_PODS_MAX);
                                break;
                        }
                        take_pages(x, pod);
                        take_logs(x, pod);
                }
        json_decref(list);
}

/* What the ledger says: of this cluster, by the options that were given. */
static void ask_command(struct look *x, const char *const *words, const char *folder, const char *name)
{
        const struct cluster_arguments *a = x->options->cluster;
        const char *all[BUNDLE_CHILD_WORDS_MAX] = { NULL };
        const char *const more[][2] = { { "--store", a->store },
                                        { "--kubeconfig", a->kubeconfig },
                                        { "--placement", a->placement },
                                        { "--overflow", a->overflow },
                                        { "--emergency-namespaces", a->emergency_namespaces },
                                        { "--emergency-classes", a->emergency_classes },
                                        { "--programs", a->programs } };
        struct bundle_child child;
        size_t count = 0;

        if (!may_ask(x, name))
                return;
        while (words[count] != NULL) {
                all[count] = words[count];
                count++;
        }
        for (size_t i = 0; i < ARRAY_SIZE(more); i++)
                if (more[i][1] != NULL) {
                        all[count++] = more[i][0];
                        all[count++] = more[i][1];
                }
        if (a->lend_reserve)
                all[count++] = "--lend-reserve";
        if (a->take_from_regular)
                all[count++] = "--take-from-regular";
        bundle_child_start(&child, all, BUNDLE_FILE_BYTES);
        x->mute = bundle_node_take(x->bundle, &child, folder, name) == -ETIMEDOUT;
}

static void explain(struct look *x, const char *kind, const json_t *object)
{
        const struct ask_arguments *ask = x->options->ask;
        const char *name = json_read_word(json_object_get(object, "metadata"), "name"),
                   *namespace_ = json_read_word(json_object_get(object, "metadata"), "namespace");
        char subject[400], file[600];

        if (!kube_name_is_safe(name) || !kube_name_is_safe(namespace_))
                return;
        (void) text_format(subject, sizeof(subject), "%s/%s", kind, name);
        (void) text_format(file, sizeof(file), "%s.%s.%s.json", namespace_, kind, name);
        ask_command(x,
                    (const char *const[]){ "remuda", "explain", subject, "--namespace", namespace_,
                                           "--output=json", "--extender-namespace", ask->namespace_,
                                           ask->extender == NULL ? NULL : "--extender", ask->extender, NULL },
                    "explain", file);
}

static void explain_who_waits(struct look *x, const char *kind, const json_t *items,
                              const char *const *phases)
{
        const json_t *object;
        size_t i, asked = 0;

        json_array_foreach(items, i, object)
        {
                const char *phase = json_read_word(json_object_get(object, "status"), "phase");
                bool waits = false;

                for (const char *const *p = phases; *p != NULL; p++)
                        waits = waits || strcmp(phase, *p) == 0;
                if (waits && asked++ < BUNDLE_CLUSTER_EXPLAIN_MAX && !x->interrupted && !x->mute)
                        explain(x, kind, object);
        }
        if (asked > BUNDLE_CLUSTER_EXPLAIN_MAX)
                bundle_miss(x->bundle, "explain", "of %zu that wait %d were asked about", asked,
                            BUNDLE_CLUSTER_EXPLAIN_MAX);
}

static const char *const waiting_jobs[] = { "", "Pending", "Planning", "Starting", NULL };
static const char *const waiting_pods[] = { "Pending", NULL };

static void take_jobs(struct look *x)
{
        const struct listing of_jobs = { "trainingjobs.json", "/apis/remuda.dev/v1alpha1", "trainingjobs", "",
                                         bundle_prune_job },
                             of_pods = { "job-pods.json", "/api/v1", "pods",
                                         "labelSelector=remuda.dev%2Fjob&",
                                         x->options->job_logs ? bundle_prune_pod : bundle_prune_job_pod },
                             of_events = { "job-events.json", "/api/v1", "events",
                                           "fieldSelector=involvedObject.kind%3DTrainingJob&",
                                           bundle_prune_event };
        const char *namespace_ = x->options->namespace_;
        json_t *jobs = take_list(x, &of_jobs, namespace_), *pods = take_list(x, &of_pods, namespace_), *pod;
        size_t i;

        json_decref(take_list(x, &of_events, namespace_));
        explain_who_waits(x, "job", json_object_get(jobs, "items"), waiting_jobs);
        explain_who_waits(x, "pod", json_object_get(pods, "items"), waiting_pods);
        json_array_foreach(json_object_get(pods, "items"), i,
                           pod) if (x->options->job_logs && i < BUNDLE_CLUSTER_PODS_MAX) take_logs(x, pod);
        json_decref(jobs);
        json_decref(pods);
}

static void take_doctor(struct look *x)
{
        const char *kubeconfig = x->options->cluster->kubeconfig;
        struct bundle_child child;

        if (!may_ask(x, FOLDER "/doctor.json"))
                return;
        bundle_child_start(&child,
                           (const char *const[]){ "remuda", "doctor", "--cluster", "--output=json",
                                                  kubeconfig == NULL ? NULL : "--kubeconfig", kubeconfig,
                                                  NULL },
                           BUNDLE_FILE_BYTES);
        (void) bundle_node_take(x->bundle, &child, FOLDER, "doctor.json");
}

static void look_at_ours(struct look *x)
{
        const char *namespace_ = x->options->ask->namespace_;

        if (!kube_name_is_safe(namespace_)) {
                bundle_miss(x->bundle, "what is ours", "--extender-namespace: '%.100s' is no name",
                            namespace_);
                return;
        }
        for (size_t i = 0; i < ARRAY_SIZE(of_ours); i++)
                json_decref(take_list(x, &of_ours[i], namespace_));
        take_our_pods(x);
}

static void look_at_cluster(struct look *x)
{
        json_t *version = get_json(x, "/version", FOLDER "/version.json");

        secrets_learn(&x->bundle->secrets, kube_client_token(x->client));
        if (version != NULL)
                bundle_add_json(x->bundle, FOLDER, BUNDLE_PARTS("version.json"), version);
        for (size_t i = 0; i < ARRAY_SIZE(of_cluster); i++)
                json_decref(take_list(x, &of_cluster[i], NULL));
        look_at_ours(x);
        take_jobs(x);
        take_doctor(x);
        ask_command(x, (const char *const[]){ "remuda", "nodes", "--output=wide", NULL }, FOLDER,
                    "ledger.txt");
}

/* The extender at an address that was given. */
static void take_address(struct look *x)
{
        const char *address = x->options->ask->extender;

        if (address == NULL || strcmp(address, "none") == 0)
                return;
        if (ask_page(x, address, NULL, "/readyz", BUNDLE_SOURCE_USEC, BUNDLE_PARTS("extender", "readyz.txt")))
                (void) ask_page(x, address, NULL, "/metrics", BUNDLE_SOURCE_USEC,
                                BUNDLE_PARTS("extender", "metrics.txt"));
}

static int look_at_store(struct look *x, struct err *err)
{
        struct bundle_store_found found = { .bundle = x->bundle, .job_logs = x->options->job_logs };
        int r = bundle_store_read(x->options->cluster->store, x->exchange.loop, &found, err);

        if (r == 0) {
                explain_who_waits(x, "job", found.items[STORE_TRAINING_JOB], waiting_jobs);
                explain_who_waits(x, "pod", found.items[STORE_POD], waiting_pods);
                ask_command(x, (const char *const[]){ "remuda", "nodes", "--output=wide", NULL }, FOLDER,
                            "ledger.txt");
        }
        bundle_store_found_free(&found);
        return r;
}

static int look_at_server(struct look *x, struct err *err)
{
        const char *kubeconfig = x->options->cluster->kubeconfig;
        int r = kube_reach(kubeconfig, err);

        if (r == 0)
                r = kube_client_new(x->exchange.loop, kubeconfig, &x->client, err);
        if (r == 0)
                look_at_cluster(x);
        return r;
}

int bundle_cluster_gather(struct bundle *bundle, const struct bundle_cluster_options *options,
                          struct err *err)
{
        struct look x = { .bundle = bundle,
                          .options = options,
                          .silent = json_object(),
                          .until_usec = clock_monotonic_usec() + BUNDLE_CLUSTER_TOTAL_USEC };
        int r = loop_new(&x.exchange.loop, err);

        if (r == 0)
                take_address(&x);
        if (r == 0)
                r = store_directory(options->cluster->store) != NULL ? look_at_store(&x, err)
                                                                     : look_at_server(&x, err);
        if (r < 0)
                bundle_miss(bundle, "the cluster", "%s", err->msg);
        kube_client_free(x.client);
        exchange_end(&x.exchange);
        json_decref(x.silent);
        return x.interrupted ? err_set(err, -EINTR, "interrupted") : 0;
}
