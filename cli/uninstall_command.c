/* remuda uninstall: everything of Remuda's is taken off a cluster, in the order of uninstall.h, and
 * nothing else. What is gone already is nothing to do: a run that was cut short is run again. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json/json_read.h"
#include "base/options.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command/commands.h"
#include "cli/command/exchange.h"
#include "cli/uninstall.h"
#include "io/clock.h"
#include "io/loop.h"
#include "store/kubernetes/kube.h"
#include "store/kubernetes/kube_reach.h"

#define CALL_USEC      UINT64_C(30000000)
#define LOOK_USEC      UINT64_C(500000) /* between two looks at what is waited for */
#define LIST_MAX_BYTES ((size_t) 512 << 20)
#define PATH_BYTES     800

struct uninstall_options {
        const char *kubeconfig;
        bool dry_run, jobs_only;
        unsigned timeout_sec;
};

#define AT(member) offsetof(struct uninstall_options, member)

/* clang-format off */
static const struct option_spec specs[] = {
        { .name = "kubeconfig", .type = OPTION_STRING, .offset = AT(kubeconfig), .value = "FILE",
          .help = "the cluster (KUBECONFIG, or the pod's own)" },
        { .name = "dry-run", .type = OPTION_BOOL, .offset = AT(dry_run),
          .help = "say what would be taken away, and change nothing" },
        { .name = "jobs-only", .type = OPTION_BOOL, .offset = AT(jobs_only),
          .help = "end the TrainingJobs alone: before `helm uninstall`" },
        { .name = "timeout", .type = OPTION_UNSIGNED, .offset = AT(timeout_sec), .value = "SECONDS", .default_ = "120",
          .minimum = 1, .maximum = 86400, .help = "for jobs to end, and for each thing that is waited for" },
        { 0 },
};
/* clang-format on */

const struct option_program command_uninstall_options = {
        .name = "remuda uninstall",
        .summary =
                "Ends the cluster's TrainingJobs and takes everything of Remuda's off it; other pods run on.",
        .specs = specs,
};

struct removal {
        struct exchange exchange;
        struct kube_client *client;
        const struct uninstall_options *options;
        unsigned taken;
};

/* Return: 0 with the reply, which may be no JSON; -ENOENT: there is no such thing (any more); -EPERM... */
static int call(struct removal *x, const char *method, const char *path, const json_t *body, json_t **ret,
                struct err *err)
{
        bool patch = strcmp(method, "PATCH") == 0, status = json_object_get(body, "status") != NULL;
        struct kube_request request = { .method = method,
                                        .path = path,
                                        .content_type = !patch                ? NULL
                                                        : json_is_array(body) ? "application/json-patch+json"
                                                        : status ? "application/strategic-merge-patch+json"
                                                                 : "application/merge-patch+json",
                                        .body = body,
                                        .reply_max_bytes = LIST_MAX_BYTES,
                                        .timeout_usec = CALL_USEC,
                                        .done = exchange_done,
                                        .userdata = &x->exchange };
        char sentence[400];
        int r;

        if (kube_call_start(x->client, &request, NULL) < 0)
                return err_set(err, -ENOMEM, "no memory to ask the API server");
        r = exchange_await(&x->exchange, err);
        if (r < 0)
                return r;
        r = kube_result(&x->exchange.result, sentence, sizeof(sentence));
        if (r < 0)
                return err_set(err, r, "%s %s: %s", method, path, sentence);
        if (ret != NULL)
                *ret = json_read(x->exchange.result.body, x->exchange.result.body_bytes, 0, err);
        return ret != NULL && *ret == NULL ? -EPROTO : 0;
}

/* What there is of it. Return: 0 and a list, empty where its kind is not known (any more). */
static int list(struct removal *x, const struct uninstall_step *step, json_t **ret, struct err *err)
{
        json_t *answer = NULL, *item, *items = json_array();
        char path[PATH_BYTES];
        size_t i;
        int r = items == NULL || !uninstall_list_path(step, path, sizeof(path)) ? -ENOMEM : 0;

        r = r < 0 ? err_set(err, r, "no memory") : call(x, "GET", path, NULL, &answer, err);
        json_array_foreach(json_object_get(answer, "items"), i, item)
        {
                if (uninstall_matches(step, item))
                        (void) json_array_append(items, item);
        }
        json_decref(answer);
        if (r == -ENOENT)
                r = 0;
        if (r < 0)
                json_decref(items);
        else
                *ret = items;
        return r;
}

static void say(struct removal *x, const char *would, const char *done, const char *kind,
                const json_t *object)
{
        char name[PATH_BYTES];

        (void) uninstall_says(object, name, sizeof(name));
        (void) printf("%s %s %s\n", x->options->dry_run ? would : done, kind, name);
        (void) fflush(stdout);
        x->taken++;
}

static int delete_one(struct removal *x, const struct uninstall_step *step, const json_t *object,
                      struct err *err)
{
        bool deleting = json_object_get(json_object_get(object, "metadata"), "deletionTimestamp") != NULL;
        json_t *body = NULL;
        char path[PATH_BYTES];
        int r = 0;

        if (!uninstall_object_path(step, object, path, sizeof(path)))
                return err_set(err, -EPROTO, "a %s has a name that is none", step->kind);
        if (!deleting)
                say(x, "would delete", "deleted", step->kind, object);
        if (deleting || x->options->dry_run)
                return 0;
        /* with those who depend on it: what is gone from the list leaves no pod behind */
        body = json_pack("{s:s, s:s, s:s}", "kind", "DeleteOptions", "apiVersion", "v1", "propagationPolicy",
                         step->way == UNINSTALL_WITH_PODS ? "Foreground" : "Background");
        r = call(x, "DELETE", path, body, NULL, err);
        json_decref(body);
        return r == -ENOENT ? 0 : r;
}

static int delete_all(struct removal *x, const struct uninstall_step *step, size_t *ret_count,
                      struct err *err)
{
        json_t *items = NULL, *item;
        size_t i;
        int r = list(x, step, &items, err);

        *ret_count = json_array_size(items);
        json_array_foreach(items, i, item)
        {
                r = r < 0 ? r : delete_one(x, step, item, err);
        }
        json_decref(items);
        return r;
}

/* Nobody is there who would: our finalizer goes, and the job with it. */
static int release_jobs(struct removal *x, const struct uninstall_step *step, struct err *err)
{
        json_t *items = NULL, *item;
        size_t i;
        int r = list(x, step, &items, err);

        json_array_foreach(items, i, item)
        {
                json_t *patch = r < 0 ? NULL : uninstall_finalizer_patch(item);
                char path[PATH_BYTES];

                if (patch == NULL || !uninstall_object_path(step, item, path, sizeof(path)))
                        continue;
                say(x, "would remove", "removed", "the finalizer of trainingjob", item);
                if (!x->options->dry_run)
                        r = call(x, "PATCH", path, patch, NULL, err);
                r = r == -ENOENT || r == -ESTALE ? 0 : r; /* it has gone, or is looked at again */
                json_decref(patch);
        }
        json_decref(items);
        return r;
}

static int has_controller(struct removal *x, bool *ret, struct err *err)
{
        static const struct uninstall_step deployments = { "deployment", "/apis/apps/v1",   "deployments",
                                                           NULL,         UNINSTALL_PART_OF, UNINSTALL_WAIT };
        json_t *items = NULL, *item;
        size_t i;
        int r = list(x, &deployments, &items, err);

        *ret = false;
        json_array_foreach(items, i, item)
        {
                *ret = *ret || uninstall_controls(item);
        }
        json_decref(items);
        return r;
}

/* Until there is none. Jobs are ended by their controller, as long as there is one and it is in time. */
static int take(struct removal *x, const struct uninstall_step *step, struct err *err)
{
        uint64_t end = clock_monotonic_usec() + x->options->timeout_sec * UINT64_C(1000000);
        size_t count = 0;
        bool waits = true, released = false;
        int r = delete_all(x, step, &count, err);

        if (r == 0 && step->way == UNINSTALL_JOBS && count > 0 && (r = has_controller(x, &waits, err)) == 0 &&
            !waits)
                end = 0;
        while (r == 0 && count > 0 && step->way != UNINSTALL_DELETE && !x->options->dry_run) {
                if (clock_monotonic_usec() >= end && step->way == UNINSTALL_JOBS && !released) {
                        released = true;
                        end = clock_monotonic_usec() + x->options->timeout_sec * UINT64_C(1000000);
                }
                if (released)
                        r = release_jobs(x, step, err);
                else if (clock_monotonic_usec() >= end)
                        return err_set(err, -ETIMEDOUT, "%zu %s%s not gone after %u s: --timeout gives more",
                                       count, step->kind, count == 1 ? " is" : "s are",
                                       x->options->timeout_sec);
                if (released && clock_monotonic_usec() >= end)
                        return err_set(
                                err, -ETIMEDOUT,
                                "%zu %s%s not gone after %u s without our finalizer: others have theirs",
                                count, step->kind, count == 1 ? " is" : "s are", x->options->timeout_sec);
                r = r < 0 ? r : exchange_pause(&x->exchange, LOOK_USEC, err);
                r = r < 0 ? r : delete_all(x, step, &count, err);
        }
        return r;
}

/* @patch: taken, NULL = it has nothing of it. What is gone meanwhile has nothing of it either. */
static int clean_node(struct removal *x, const char *path, json_t *patch, const char *what,
                      const json_t *node, struct err *err)
{
        int r = 0;

        if (patch == NULL)
                return 0;
        say(x, "would remove", "removed", what, node);
        if (!x->options->dry_run)
                r = call(x, "PATCH", path, patch, NULL, err);
        json_decref(patch);
        return r == -ENOENT ? 0 : r;
}

static int clean_nodes(struct removal *x, struct err *err)
{
        static const struct uninstall_step nodes = { "node", "/api/v1",     "nodes",
                                                     NULL,   UNINSTALL_ALL, UNINSTALL_DELETE };
        json_t *items = NULL, *item;
        size_t i;
        int r = list(x, &nodes, &items, err);

        json_array_foreach(items, i, item)
        {
                char path[PATH_BYTES], status[PATH_BYTES + 8];

                if (r < 0 || !uninstall_object_path(&nodes, item, path, sizeof(path)))
                        continue;
                (void) text_format(status, sizeof(status), "%s/status", path);
                r = clean_node(x, path, uninstall_node_patch(item), "the labels of node", item, err);
                if (r == 0)
                        r = clean_node(x, status, uninstall_condition_patch(item), "the condition of node",
                                       item, err);
                if (r == 0)
                        r = clean_node(x, path, uninstall_taint_patch(item), "the taint of node", item, err);
        }
        json_decref(items);
        return r;
}

static int remove_everything(struct removal *x, struct err *err)
{
        int r = 0;

        for (size_t i = 0; uninstall_steps[i].kind != NULL && r == 0; i++) {
                if (x->options->jobs_only && i == uninstall_rest_step)
                        return 0;
                if (i == uninstall_nodes_step)
                        r = clean_nodes(x, err);
                r = r < 0 ? r : take(x, &uninstall_steps[i], err);
        }
        return r;
}

static int uninstall(const struct uninstall_options *options, struct err *err)
{
        struct removal x = { .options = options };
        int r = kube_reach(options->kubeconfig, err);

        if (r == 0)
                r = loop_new(&x.exchange.loop, err);
        if (r == 0)
                r = kube_client_new(x.exchange.loop, options->kubeconfig, &x.client, err);
        if (r == 0)
                r = remove_everything(&x, err);
        kube_client_free(x.client);
        exchange_end(&x.exchange);
        if (r == 0 && x.taken == 0)
                (void) puts(options->jobs_only ? "there is no TrainingJob" : "nothing of Remuda's is there");
        else if (r == 0 && !options->dry_run && !options->jobs_only)
                (void) puts("what agents remembered of their nodes is left: /var/lib/remuda there");
        return r == -EPERM ? err_wrap(err, r, "a right is missing; an administrator of the cluster has it")
                           : r;
}

int command_uninstall(int argc, char **argv)
{
        struct uninstall_options options = { 0 };
        struct err err = { 0 };
        int code = options_start(&command_uninstall_options, REMUDA_VERSION, argc, argv, &options, NULL,
                                 stdout, stderr);

        return code >= 0 ? code
                         : options_end(&command_uninstall_options, uninstall(&options, &err), &err, stderr);
}
