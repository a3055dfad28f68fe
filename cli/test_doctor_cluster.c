/* remuda doctor --cluster against an API server that says it all: of a cluster in order one thing is changed,
 * and the check of it says what and what to do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "cli/doctor.h"
#include "io/http/http_server.h"
#include "io/loop.h"

#define ADMISSION   "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
#define BINDINGS    "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/"
#define LEASES      "/apis/coordination.k8s.io/v1/namespaces/remuda/leases/"
#define JOB_ROLE    "/apis/rbac.authorization.k8s.io/v1/clusterroles/remuda-job-namespace"
#define REVIEWS     "/apis/authorization.k8s.io/v1/subjectaccessreviews"
#define JOBS        "/apis/remuda.dev/v1alpha1/trainingjobs"
#define PROFILE     "/api/v1/namespaces/remuda/configmaps/remuda-scheduler"
#define INVENTORIES "/apis/remuda.dev/v1alpha1/nodeaccelerators"
#define INVENTORY(RESOURCE)                                                                                  \
        "{\"items\":[{\"metadata\":{\"name\":\"n7\"},\"status\":{\"groups\":[{\"resource\":\"" RESOURCE      \
        "\"}]}}]}"
#define GROUPS            "/apis/scheduling.k8s.io"
#define VERSIONS(VERSION) "{\"versions\":[{\"version\":\"v1\"},{\"version\":\"" VERSION "\"}]}"
#define DEPLOYMENT        "/apis/apps/v1/namespaces/remuda/deployments/remuda-scheduler"
#define SCHEDULER(IMAGE)                                                                                     \
        "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"extender\"},{\"name\":\"kube-"       \
        "scheduler\",\"image\":\"" IMAGE "\"}]}}}}"
#define LONG                                                                                                 \
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa" \
        "aaaaaaaaaaaaaa"
#define JOB(NAMESPACE) "{\"metadata\":{\"namespace\":\"" NAMESPACE "\"}}"

/* What differs from a cluster in order. */
struct change {
        const char *path; /* that is asked for */
        unsigned status;
        const char *body;
};

struct row {
        const char *check;
        enum doctor_verdict verdict;
        const char *says, *remedy; /* parts of both sentences; the remedy of all is to install as it says */
        struct change change;
        bool held;         /* the controller is held to some namespaces */
        const char *right; /* "NAMESPACE VERB RESOURCE[/SUBRESOURCE]" that every account has; NAMESPACE "*":
                              everywhere */
};

#define SLICES "/apis/resource.k8s.io/v1/resourceslices"
#define SLICE(DRIVER, NODE, GENERATION, COUNT)                                                               \
        "{\"spec\":{\"driver\":\"" DRIVER "\",\"nodeName\":\"" NODE "\",\"pool\":{\"name\":\"" NODE          \
        "\",\"generation\":" GENERATION ",\"resourceSliceCount\":" COUNT                                     \
        "},\"devices\":[{\"name\":\"d\"}]}}"
#define INSTALL "kubectl apply -k manifests/"
/* clang-format off */
static const struct row rows[] = {
        { .check = "policies", .verdict = DOCTOR_PASS, .says = "7 admission policies are in force" },
        { .check = "policies", .verdict = DOCTOR_FAIL, .says = "there is no policy remuda-job-status: 404: gone", .remedy = INSTALL,
          .change = { ADMISSION "ies/remuda-job-status", 404, "{\"message\":\"gone\"}" } },
        { .check = "policies", .verdict = DOCTOR_FAIL, .says = "there is no policy remuda-pod-records: the API server answered 404", .remedy = INSTALL,
          .change = { ADMISSION "ybindings/remuda-pod-records", 404, "" } },
        { .check = "policies", .verdict = DOCTOR_WARN, .says = "policy remuda-pod-records cannot be read: 403: no", .remedy = "ask as somebody who may",
          .change = { ADMISSION "ies/remuda-pod-records", 403, "{\"message\":\"no\"}" } },
        { .check = "policies", .verdict = DOCTOR_FAIL, .says = "policy remuda-pod-records cannot be read: 500: oh", .remedy = "ask again",
          .change = { ADMISSION "ybindings/remuda-pod-records", 500, "{\"message\":\"oh\"}" } },
        { .check = "policies", .verdict = DOCTOR_FAIL, .says = "policy remuda-agent-own-node names an account", .remedy = INSTALL,
          .change = { ADMISSION "ies/remuda-agent-own-node", 200, "{\"spec\":{\"for\":\"system:serviceaccount:remuda:remuda-agent\"}}" } },
        { .check = "policies", .verdict = DOCTOR_FAIL, .says = "policy remuda-agent-own-lease is bound without Deny", .remedy = INSTALL,
          .change = { ADMISSION "ybindings/remuda-agent-own-lease", 200, "{\"spec\":{\"validationActions\":[\"Audit\"]}}" } },
        { .check = "policies", .verdict = DOCTOR_FAIL, .says = "policy remuda-scheduler-writes is bound without Deny", .remedy = INSTALL,
          .change = { ADMISSION "ybindings/remuda-scheduler-writes", 200, "{}" } },

        { .check = "rights", .verdict = DOCTOR_PASS, .says = "scheduler and controller have no more rights than they need" },
        { .check = "rights", .verdict = DOCTOR_PASS, .says = "no more rights", .right = "team create pods" },
        { .check = "rights", .verdict = DOCTOR_FAIL, .says = "there is no ClusterRoleBinding remuda-scheduler", .remedy = INSTALL,
          .change = { BINDINGS "remuda-scheduler", 404, "" } },
        { .check = "rights", .verdict = DOCTOR_FAIL, .says = "ClusterRoleBinding remuda-controller names no account of a namespace", .remedy = INSTALL,
          .change = { BINDINGS "remuda-controller", 200, "{\"subjects\":[{\"kind\":\"User\",\"name\":\"eve\"}]}" } },
        { .check = "rights", .verdict = DOCTOR_FAIL, .says = "ClusterRoleBinding remuda-controller names no account of a namespace", .remedy = INSTALL,
          .change = { BINDINGS "remuda-controller", 200, "{\"subjects\":[{\"namespace\":\"" LONG LONG LONG "\",\"name\":\"a\"}]}" } },
        { .check = "rights", .verdict = DOCTOR_WARN, .says = "ClusterRoleBinding remuda-controller cannot be read: 403: no", .remedy = "ask as somebody who may",
          .change = { BINDINGS "remuda-controller", 403, "{\"message\":\"no\"}" } },
        { .check = "rights", .verdict = DOCTOR_FAIL, .says = "ClusterRoleBinding remuda-controller cannot be read: the API server's answer is no JSON", .remedy = "ask again",
          .change = { BINDINGS "remuda-controller", 200, "junk" } },
        { .check = "rights", .verdict = DOCTOR_FAIL, .says = "system:serviceaccount:remuda:remuda-scheduler may patch pods in every namespace",
          .remedy = "take the role away", .right = "* patch pods" },
        { .check = "rights", .verdict = DOCTOR_FAIL, .says = "remuda:remuda-controller may create pods/binding in every namespace",
          .remedy = "take the role away", .right = "* create pods/binding" },
        { .check = "rights", .verdict = DOCTOR_WARN, .says = "the rights of system:serviceaccount:remuda:remuda-scheduler could not be asked",
          .remedy = "subjectaccessreviews", .change = { REVIEWS, 403, "{\"message\":\"no\"}" } },

        { .check = "claims", .verdict = DOCTOR_SKIP, .says = "no devices are offered by claims", .change = { BINDINGS "remuda-agent-dra", 404, "" } },
        { .check = "claims", .verdict = DOCTOR_FAIL, .says = "remuda:remuda-agent may not delete resourceslices: nothing is offered", .remedy = "manifests/dra",
          .right = "* create resourceslices" },
        { .check = "claims", .verdict = DOCTOR_FAIL, .says = "policy remuda-agent-own-slices is bound without Deny", .remedy = INSTALL,
          .change = { ADMISSION "ybindings/remuda-agent-own-slices", 200, "{}" } },
        { .check = "claims", .verdict = DOCTOR_FAIL, .says = "there is no policy remuda-agent-own-slices", .remedy = INSTALL,
          .change = { ADMISSION "ies/remuda-agent-own-slices", 404, "" } },
        { .check = "claims", .verdict = DOCTOR_PASS, .says = "agents may write the slices of their own nodes", .right = "of claims" },
        { .check = "claims", .verdict = DOCTOR_FAIL, .says = "there is no resource.k8s.io/v1 DeviceClass remuda-cuda", .remedy = INSTALL, .right = "of claims",
          .change = { "/apis/resource.k8s.io/v1/deviceclasses/remuda-cuda", 404, "" } },
        { .check = "claims", .verdict = DOCTOR_WARN, .says = "remuda:remuda-agent could not be asked", .remedy = "subjectaccessreviews",
          .change = { REVIEWS, 403, "{\"message\":\"no\"}" } },

        { .check = "scheduler leads", .verdict = DOCTOR_PASS, .says = "pod-7 leads" },
        { .check = "scheduler leads", .verdict = DOCTOR_FAIL, .says = "ClusterRoleBinding remuda-scheduler cannot be read: the API server answered 500", .remedy = "ask again",
          .change = { BINDINGS "remuda-scheduler", 500, "junk" } },
        { .check = "scheduler leads", .verdict = DOCTOR_WARN, .says = "Lease remuda/remuda-extender cannot be read: 403: no", .remedy = "ask as somebody who may",
          .change = { LEASES "remuda-extender", 403, "{\"message\":\"no\"}" } },
        { .check = "scheduler leads", .verdict = DOCTOR_FAIL, .says = "Lease remuda/remuda-extender cannot be read: 503: busy", .remedy = "ask again",
          .change = { LEASES "remuda-extender", 503, "{\"message\":\"busy\"}" } },
        { .check = "scheduler leads", .verdict = DOCTOR_FAIL, .says = "nobody leads: Lease remuda/remuda-extender: the API server answered 404", .remedy = "look at the log",
          .change = { LEASES "remuda-extender", 404, "" } },
        { .check = "preemption", .verdict = DOCTOR_PASS, .says = "kube-scheduler leaves preemption to the extender" },
        { .check = "preemption", .verdict = DOCTOR_WARN, .says = "profile remuda of kube-scheduler preempts, too", .remedy = "disable DefaultPreemption",
          .change = { PROFILE, 200, "{\"data\":{\"scheduler.yaml\":\"profiles: [{schedulerName: remuda}]\"}}" } },
        { .check = "preemption", .verdict = DOCTOR_FAIL, .says = "kube-scheduler's configuration: line ", .remedy = INSTALL,
          .change = { PROFILE, 200, "{\"data\":{\"scheduler.yaml\":\"[\"}}" } },
        { .check = "preemption", .verdict = DOCTOR_WARN, .says = "is not scheduler.yaml of ConfigMap remuda/remuda-scheduler: 404: gone", .remedy = "compare it with manifests/",
          .change = { PROFILE, 404, "{\"message\":\"gone\"}" } },

        { .check = "managed resources", .verdict = DOCTOR_PASS, .says = "pods of every resource in an inventory come to the extender" },
        { .check = "managed resources", .verdict = DOCTOR_PASS, .says = "pods of every resource", .change = { INVENTORIES, 200, INVENTORY("nvidia.com/gpu") } },
        { .check = "managed resources", .verdict = DOCTOR_FAIL, .says = "pods that ask for example.com/gpu (node n7) never come to the extender",
          .remedy = "add its name to managedResources", .change = { INVENTORIES, 200, INVENTORY("example.com/gpu") } },
        { .check = "managed resources", .verdict = DOCTOR_WARN, .says = "there are more than 5000 inventories, and only their resources were looked at",
          .remedy = "kubectl get nodeaccelerators", .change = { INVENTORIES, 200, "{\"metadata\":{\"continue\":\"next\"},\"items\":[]}" } },
        { .check = "managed resources", .verdict = DOCTOR_WARN, .says = "nodeaccelerators cannot be read: 403: no", .remedy = "ask as somebody",
          .change = { INVENTORIES, 403, "{\"message\":\"no\"}" } },
        { .check = "preemption", .verdict = DOCTOR_WARN, .says = "ConfigMap remuda/remuda-scheduler cannot be read: 403: no", .remedy = "ask as somebody who may",
          .change = { PROFILE, 403, "{\"message\":\"no\"}" } },

        { .check = "scheduler version", .verdict = DOCTOR_PASS, .says = "kube-scheduler 1.33 suits Kubernetes v1.34.4+k3s1" },
        { .check = "scheduler version", .verdict = DOCTOR_FAIL, .says = "kube-scheduler is of version 1.33, Kubernetes is v1.32.9", .remedy = "newTag",
          .change = { "/version", 200, "{\"gitVersion\":\"v1.32.9\"}" } },
        { .check = "scheduler version", .verdict = DOCTOR_FAIL, .says = "kube-scheduler is of version 1.33, Kubernetes is v1.35", .remedy = "newTag",
          .change = { "/version", 200, "{\"gitVersion\":\"v1.35\"}" } },
        { .check = "scheduler version", .verdict = DOCTOR_WARN, .says = "the API server's /version cannot be read: 403: no", .remedy = "ask as somebody who may",
          .change = { "/version", 403, "{\"message\":\"no\"}" } },
        { .check = "scheduler version", .verdict = DOCTOR_WARN, .says = "cannot be compared with Kubernetes ''", .remedy = "newTag",
          .change = { "/version", 200, "{}" } },
        { .check = "scheduler version", .verdict = DOCTOR_WARN, .says = "Deployment remuda/remuda-scheduler cannot be read: 403: no", .remedy = "ask as somebody who may",
          .change = { DEPLOYMENT, 403, "{\"message\":\"no\"}" } },
        { .check = "scheduler version", .verdict = DOCTOR_WARN, .says = "kube-scheduler 'mine:latest' cannot be compared", .remedy = "newTag",
          .change = { DEPLOYMENT, 200, SCHEDULER("mine:latest") } },
        { .check = "scheduler version", .verdict = DOCTOR_WARN, .says = "kube-scheduler '' cannot be compared", .remedy = "newTag",
          .change = { DEPLOYMENT, 404, "" } },

        { .check = "slices", .verdict = DOCTOR_PASS, .says = "0 slices of remuda.dev" },
        { .check = "slices", .verdict = DOCTOR_PASS, .says = "3 slices of remuda.dev, each pool is whole",
          .change = { SLICES, 200, "{\"items\":[" SLICE("remuda.dev", "a", "4", "2") "," SLICE("remuda.dev", "b", "1", "1") "," SLICE("remuda.dev", "a", "4", "2") ","
                      SLICE("gpu.nvidia.com", "c", "1", "1") "," SLICE("nic.example.com", "a", "1", "1") "]}" } },
        { .check = "slices", .verdict = DOCTOR_WARN, .says = "the slices of node a are not whole: 1 of 2 of generation 5", .remedy = "the agent on that node",
          .change = { SLICES, 200, "{\"items\":[" SLICE("remuda.dev", "a", "4", "2") "," SLICE("remuda.dev", "a", "5", "2") "]}" } },
        { .check = "slices", .verdict = DOCTOR_FAIL, .says = "the drivers gpu.nvidia.com and remuda.dev both offer the chips of node a", .remedy = "take one of both",
          .change = { SLICES, 200, "{\"items\":[" SLICE("gpu.nvidia.com", "a", "1", "1") "," SLICE("remuda.dev", "a", "1", "1") "]}" } },
        { .check = "slices", .verdict = DOCTOR_WARN, .says = "there are more than 500 ResourceSlices", .remedy = "`remuda doctor` on a node",
          .change = { SLICES, 200, "{\"metadata\":{\"continue\":\"next\"},\"items\":[" SLICE("remuda.dev", "a", "1", "1") "," SLICE("remuda.dev", "b", "4", "2") "]}" } },
        { .check = "slices", .verdict = DOCTOR_SKIP, .says = "this cluster has no resource.k8s.io/v1", .change = { SLICES, 404, "" } },
        { .check = "slices", .verdict = DOCTOR_WARN, .says = "list of ResourceSlices cannot be read: 403", .remedy = "ask as somebody who may",
          .change = { SLICES, 403, "{\"message\":\"no\"}" } },
        { .check = "slices", .verdict = DOCTOR_WARN, .says = "there are more than 500 ResourceSlices", .remedy = "on a node",
          .change = { SLICES, 200, "{\"metadata\":{\"continue\":\"x\"},\"items\":[]}" } },

        { .check = "pod groups", .verdict = DOCTOR_PASS, .says = "Kubernetes has no groups of pods here" },
        { .check = "pod groups", .verdict = DOCTOR_PASS, .says = "the groups of pods that Kubernetes has are read", .right = "* list podgroups",
          .change = { GROUPS, 200, VERSIONS("v1alpha2") } },
        { .check = "pod groups", .verdict = DOCTOR_FAIL, .says = "remuda:remuda-scheduler may not list podgroups: pods of such groups go each by itself", .remedy = INSTALL,
          .change = { GROUPS, 200, VERSIONS("v1alpha2") } },
        { .check = "pod groups", .verdict = DOCTOR_FAIL, .says = "may not list workloads", .remedy = INSTALL, .right = "* list podgroups",
          .change = { GROUPS, 200, VERSIONS("v1alpha1") } },
        { .check = "pod groups", .verdict = DOCTOR_WARN, .says = "groups of pods of scheduling.k8s.io/v1beta1 are not read", .remedy = "v1alpha2",
          .change = { GROUPS, 200, VERSIONS("v1beta1") } },
        { .check = "pod groups", .verdict = DOCTOR_FAIL, .says = "API group scheduling.k8s.io cannot be read: the API server answered 500", .remedy = "ask again",
          .change = { GROUPS, 500, "{}" } },

        { .check = "controller leads", .verdict = DOCTOR_PASS, .says = "pod-7 leads" },
        { .check = "controller leads", .verdict = DOCTOR_FAIL, .says = "nobody leads: Lease remuda/remuda-controller", .remedy = "look at the log",
          .change = { LEASES "remuda-controller", 200, "{\"spec\":{\"renewTime\":\"2099-01-01T00:00:00Z\"}}" } },
        { .check = "controller leads", .verdict = DOCTOR_FAIL, .says = "nobody leads: Lease remuda/remuda-controller", .remedy = "look at the log",
          .change = { LEASES "remuda-controller", 200, "{\"spec\":{\"holderIdentity\":\"pod-7\",\"renewTime\":\"soon\"}}" } },
        { .check = "controller leads", .verdict = DOCTOR_WARN, .says = "pod-8 leads by Lease remuda/remuda-controller, and was silent for ", .remedy = "look at its log",
          .change = { LEASES "remuda-controller", 200, "{\"spec\":{\"holderIdentity\":\"pod-8\",\"renewTime\":\"2020-01-01T00:00:00Z\"}}" } },

        { .check = "job namespaces", .verdict = DOCTOR_PASS, .says = "the 0 namespaces with TrainingJobs are admitted" },
        { .check = "job namespaces", .verdict = DOCTOR_PASS, .says = "the 1 namespaces with TrainingJobs are admitted", .right = "team create pods",
          .change = { JOBS, 200, "{\"items\":[" JOB("team") "," JOB("team") "]}" } },
        { .check = "job namespaces", .verdict = DOCTOR_FAIL, .says = "namespace other has TrainingJobs and is not admitted", .right = "team create pods",
          .remedy = "-n other --clusterrole=remuda-job-namespace --serviceaccount=remuda:remuda-controller",
          .change = { JOBS, 200, "{\"items\":[" JOB("team") "," JOB("other") "]}" } },
        { .check = "job namespaces", .verdict = DOCTOR_WARN, .says = "namespace other has TrainingJobs and is none of those of the controller", .right = "team create pods",
          .remedy = "kubectl apply -n other -f manifests/controller-namespaces/role.yaml",
          .change = { JOBS, 200, "{\"items\":[" JOB("other") "]}" }, .held = true },
        { .check = "job namespaces", .verdict = DOCTOR_WARN, .says = "list of TrainingJobs cannot be read: 403: no", .remedy = "ask as somebody who may",
          .change = { JOBS, 403, "{\"message\":\"no\"}" } },
        { .check = "job namespaces", .verdict = DOCTOR_FAIL, .says = "there is no list of TrainingJobs: 404: what", .remedy = INSTALL,
          .change = { JOBS, 404, "{\"message\":\"what\"}" } },
        { .check = "job namespaces", .verdict = DOCTOR_WARN, .says = "there are more than 500 TrainingJobs, and only their namespaces were looked at", .right = "team create pods",
          .remedy = "kubectl get trainingjobs -A",
          .change = { JOBS, 200, "{\"metadata\":{\"continue\":\"next\"},\"items\":[" JOB("team") "]}" } },
        { .check = "job namespaces", .verdict = DOCTOR_FAIL, .says = "there is no ClusterRoleBinding remuda-controller", .remedy = INSTALL,
          .change = { BINDINGS "remuda-controller", 404, "" } },
};
/* clang-format on */

static const struct row *now; /* that is played */

static const char *in_order(const char *path)
{
        if (text_starts_with(path, ADMISSION "ies/"))
                return "{\"spec\":{\"for\":\"userInfo\"}}";
        if (text_starts_with(path, ADMISSION "ybindings/"))
                return "{\"spec\":{\"validationActions\":[\"Deny\"]}}";
        if (strcmp(path, BINDINGS "remuda-scheduler") == 0)
                return "{\"subjects\":[{\"namespace\":\"remuda\",\"name\":\"remuda-scheduler\"}]}";
        if (strcmp(path, BINDINGS "remuda-agent-dra") == 0)
                return "{\"subjects\":[{\"namespace\":\"remuda\",\"name\":\"remuda-agent\"}]}";
        if (strcmp(path, BINDINGS "remuda-controller") == 0)
                return "{\"subjects\":[{\"namespace\":\"remuda\",\"name\":\"remuda-controller\"}]}";
        if (text_starts_with(path, LEASES))
                return "{\"spec\":{\"holderIdentity\":\"pod-7\",\"renewTime\":\"2099-01-01T00:00:00Z\"}}";
        if (strcmp(path, "/version") == 0)
                return "{\"gitVersion\":\"v1.34.4+k3s1\"}";
        if (strcmp(path, DEPLOYMENT) == 0)
                return SCHEDULER("registry.k8s.io/kube-scheduler:v1.33.13@sha256:0123");
        if (strcmp(path, PROFILE) == 0)
                return "{\"data\":{\"scheduler.yaml\":\"{profiles: [{plugins: {postFilter: {disabled: "
                       "[{name: DefaultPreemption}]}}}], extenders: [{managedResources: [{name: "
                       "nvidia.com/gpu}]}]}\"}}";
        return "{\"items\":[]}";
}

static void on_get(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        bool changed = now->change.path != NULL && strcmp(request->path, now->change.path) == 0;

        (void) userdata;
        if (now->held && strcmp(request->path, JOB_ROLE) == 0)
                http_reply_text(reply, 404, "application/json", "{}");
        else
                http_reply_text(reply, changed ? now->change.status : 200, "application/json",
                                changed ? now->change.body : in_order(request->path));
}

static void on_review(void *userdata, const struct http_request *request, struct http_reply *reply)
{
        json_t *review = json_loads(request->body, 0, NULL), *spec = json_object_get(review, "spec");
        const char *user, *verb, *resource, *subresource = "", *namespace_ = "*";
        char right[200];

        if (now->change.path != NULL && strcmp(now->change.path, REVIEWS) == 0) {
                on_get(userdata, request, reply);
                json_decref(review);
                return;
        }
        assert_int_equal(json_unpack(spec, "{s:s, s:{s:s, s:s, s?s, s?s}}", "user", &user,
                                     "resourceAttributes", "verb", &verb, "resource", &resource,
                                     "subresource", &subresource, "namespace", &namespace_),
                         0);
        assert_true(text_starts_with(user, "system:serviceaccount:remuda:remuda-"));
        (void) text_format(right, sizeof(right), "%s %s %s%s%s", namespace_, verb, resource,
                           subresource[0] == '\0' ? "" : "/", subresource);
        http_reply_text(reply, 201, "application/json",
                        now->right != NULL && (strcmp(right, now->right) == 0 ||
                                               (strcmp(now->right, "of claims") == 0 &&
                                                strstr(right, "resource") != NULL))
                                ? "{\"status\":{\"allowed\":true}}"
                                : "{\"status\":{\"allowed\":false}}");
        json_decref(review);
}

static void open_client(sd_event *loop, const char *address, struct kube_client **ret)
{
        char path[] = "/tmp/remuda-doctor-XXXXXX";
        CLEANUP(close_p) int fd = mkstemp(path);
        struct err err = { 0 };

        assert_true(
                dprintf(fd,
                        "{\"current-context\":\"c\",\"contexts\":[{\"name\":\"c\",\"context\":{\"cluster\":"
                        "\"k\"}}],\"clusters\":[{\"name\":\"k\",\"cluster\":{\"server\":\"http://%s\"}}]}",
                        address) > 0);
        if (kube_client_new(loop, path, ret, &err) < 0)
                fail_msg("%s", err.msg);
        (void) unlink(path);
}

static struct doctor_finding check(const struct doctor_patient *patient, const char *name)
{
        struct doctor_finding f = { .verdict = DOCTOR_PASS };
        const struct doctor_check *at = doctor_checks_cluster;

        while (strcmp(at->name, name) != 0)
                at++;
        at->run(patient, &f);
        return f;
}

static void each_thing_that_is_wrong_is_found(void **state)
{
        static const struct http_route routes[] = {
                { .method = "GET", .path = "/apis/*", .handler = on_get },
                { .method = "GET", .path = "/api/*", .handler = on_get },
                { .method = "GET", .path = "/version", .handler = on_get },
                { .method = "POST", .path = REVIEWS, .handler = on_review },
                { 0 }
        };
        const struct http_server_options options = { .address = "127.0.0.1:0", .routes = routes };
        struct doctor_patient patient = { .live = false };
        struct http_server *server = NULL;
        struct err err = { 0 };

        (void) state;
        assert_int_equal(loop_new(&patient.loop, &err), 0);
        assert_int_equal(http_server_new(patient.loop, &options, &server, &err), 0);
        open_client(patient.loop, http_server_address(server), &patient.kube);
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                struct doctor_finding f;

                now = &rows[i];
                f = check(&patient, now->check);
                if (f.verdict != now->verdict || strstr(f.sentence, now->says) == NULL ||
                    strstr(f.remedy, now->remedy == NULL ? "" : now->remedy) == NULL ||
                    (now->remedy == NULL) != (f.remedy[0] == '\0'))
                        fail_msg("row %zu: want '%s', got %d '%s' -> '%s'", i, now->says, (int) f.verdict,
                                 f.sentence, f.remedy);
        }
        kube_client_free(patient.kube);
        http_server_free(server);
        sd_event_unref(patient.loop);
}

static void an_api_server_that_is_away_is_no_good_news(void **state)
{
        struct doctor_patient patient = { .live = false };
        struct err err = { 0 };

        (void) state;
        assert_int_equal(loop_new(&patient.loop, &err), 0);
        open_client(patient.loop, "127.0.0.1:1", &patient.kube);
        for (const struct doctor_check *at = doctor_checks_cluster; at->name != NULL; at++)
                assert_int_equal(check(&patient, at->name).verdict, DOCTOR_FAIL);
        kube_client_free(patient.kube);
        sd_event_unref(patient.loop);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(each_thing_that_is_wrong_is_found),
                cmocka_unit_test(an_api_server_that_is_away_is_no_good_news),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
