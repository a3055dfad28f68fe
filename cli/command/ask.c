/* One request over HTTP, at an address or through a forwarded port. */
#include "cli/command/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/json/json_read.h"
#include "base/text.h"
#include "base/version.h"
#include "cli/command/exchange.h"
#include "cli/command/leading.h"
#include "cli/command/table.h"
#include "io/address.h"
#include "io/http/http_client.h"
#include "io/loop.h"
#include "store/kubernetes/kube.h"
#include "store/kubernetes/kube_reach.h"
#include "store/kubernetes/port_forward.h"
#include "store/leader.h"
#include "store/store.h"

#define ANSWER_MAX_BYTES ((size_t) 64 << 20)
#define STEP_USEC        UINT64_C(10000000) /* of a look at the Lease, and of a forwarded port */
#define ANSWER_USEC      UINT64_C(15000000) /* an extender works for ten seconds at most */

/* What an extender refuses begins with what it was asked: "explain: there is no pod"; another server, or one
 * of a version that knows no such question, also says 404. */
static bool is_its_own(const char *sentence, const struct ask_question *question)
{
        const char *verb = question->path + strlen("/v1/");
        size_t length = strcspn(verb, "?");

        return strncmp(sentence, verb, length) == 0 && sentence[length] == ':';
}

/* What came of it: an object with what every answer has, or the extender's own sentence. */
static int judge(struct exchange *e, const struct ask_question *question, json_t **ret, struct err *err)
{
        json_t *answer = NULL;
        struct json_field root;
        const char *sentence = "";

        if (e->result.error < 0)
                return err_set(err, e->result.error, "%s: %s",
                               e->result.status == 0 ? "no extender answers"
                                                     : "the extender's answer is not whole",
                               e->result.sentence);
        answer = json_read(e->result.body, e->result.body_bytes, 0, NULL);
        root = json_field_root(answer);
        (void) json_field_string(&root, "error", &sentence, NULL);
        if (e->result.status == 200 && json_field_get(&root, question->wanted).value != NULL) {
                *ret = answer;
                return 0;
        }
        e->said = (e->result.status == 404 || e->result.status == 400) && is_its_own(sentence, question);
        if (e->result.status == 200)
                (void) err_set(err, -EPROTO, "what the extender answers is no answer to that");
        else
                (void) err_set(err,
                               e->result.status == 503   ? -EAGAIN
                               : !e->said                ? -EPROTO
                               : e->result.status == 404 ? -ENOENT
                                                         : -EBADMSG,
                               "%s%.200s", sentence[0] != '\0' ? "" : "the extender refuses to answer",
                               sentence);
        json_decref(answer);
        return err->code;
}

/* @socket: that leads there, or NULL */
static int ask_at(struct exchange *e, const char *address, const char *socket,
                  const struct ask_question *question, json_t **ret, struct err *err)
{
        CLEANUP(free_p) char *body = question->body == NULL ? NULL : json_dumps(question->body, JSON_COMPACT);
        char url[300];
        struct http_client_options options = { .base_url = url,
                                               .unix_socket = socket,
                                               .user_agent = "remuda/" REMUDA_VERSION " (linux)" };
        struct http_call_options call = { .method = question->body == NULL ? "GET" : "POST",
                                          .path = question->path,
                                          .content_type = "application/json",
                                          .body = body,
                                          .body_bytes = body == NULL ? 0 : strlen(body),
                                          .timeout_usec = ANSWER_USEC,
                                          .reply_max_bytes = ANSWER_MAX_BYTES,
                                          .done = exchange_done,
                                          .userdata = e };
        struct http_client *client = NULL;
        int r;

        (void) text_format(url, sizeof(url), "http://%s", address);
        if (question->body != NULL && body == NULL)
                r = err_set(err, -ENOMEM, "no memory for the question");
        else
                r = http_client_new(e->loop, &options, &client, err);
        if (r == 0 && http_call_start(client, &call, NULL) < 0)
                r = err_set(err, -ENOMEM, "no memory for the question");
        if (r == 0)
                r = exchange_await(e, err);
        if (r == 0)
                r = judge(e, question, ret, err);
        http_client_free(client);
        return r;
}

static int ask_address(const char *address, const struct ask_question *question, json_t **ret,
                       struct err *err)
{
        struct exchange e = { .loop = NULL };
        struct address numeric;
        int r = address_parse(address, &numeric, err);

        if (r < 0)
                return err_wrap(err, r, "--extender");
        if (numeric.u.any.sa_family == AF_UNIX)
                return err_set(err, -EINVAL, "--extender: must be ADDR:PORT, not '%.100s'", address);
        r = loop_new(&e.loop, err);
        if (r == 0)
                r = ask_at(&e, address, NULL, question, ret, err);
        exchange_end(&e);
        return r < 0 ? err_wrap(err, r, "%.100s", address) : r;
}

/* Through the API server to the pod that leads. */
static int ask_through(struct exchange *e, struct kube_client *client, const char *namespace_,
                       const struct ask_question *question, struct leading *leading, json_t **ret,
                       struct err *err)
{
        struct port_forward *forward = NULL;
        char address[64], name[PORT_FORWARD_NAME_BYTES];
        int r;

        if (!kube_name_is_safe(namespace_))
                return err_set(err, -EINVAL, "--extender-namespace: '%.100s' is no name", namespace_);
        r = leading_find(e, client, namespace_, leading, err);
        if (r == 0)
                r = port_forward_open(
                        e->loop, client,
                        &(struct port_forward_target){ namespace_, leading->pod, leading->port }, STEP_USEC,
                        &forward, name, err);
        if (r < 0)
                return r;
        (void) text_format(address, sizeof(address), "127.0.0.1:%u", leading->port);
        r = ask_at(e, address, name, question, ret, err);
        leading->said = e->said;
        if (r < 0 && r != -EINTR && !e->said && port_forward_failure(forward)[0] != '\0')
                r = err_set(err, -EPROTO, "%s", port_forward_failure(forward));
        port_forward_close(forward);
        return r;
}

static int ask_leading(const char *namespace_, const char *kubeconfig, const struct ask_question *question,
                       struct leading *leading, json_t **ret, struct err *err)
{
        struct exchange e = { .loop = NULL };
        struct kube_client *client = NULL;
        int r = kube_reach(kubeconfig, err);

        if (r < 0)
                return r == -ENOENT ? -ENODATA : r; /* no kubeconfig; -ENOENT is the extender's own word */
        r = loop_new(&e.loop, err);
        if (r == 0)
                r = kube_client_new(e.loop, kubeconfig, &client, err);
        if (r == 0)
                r = ask_through(&e, client, namespace_, question, leading, ret, err);
        kube_client_free(client);
        exchange_end(&e);
        return r;
}

int ask_extender(const struct ask_arguments *a, const struct cluster_arguments *cluster,
                 const struct ask_question *question, json_t **ret, char who[ASK_WHO_BYTES], struct err *err)
{
        const char *address = a->extender != NULL ? a->extender : getenv("REMUDA_EXTENDER");
        struct leading leading = { .port = 0 };
        struct err why = { 0 };
        int r;

        if (address != NULL && address[0] == '\0')
                address = NULL;
        (void) text_format(who, ASK_WHO_BYTES, "store %s", cluster->store);
        if (address != NULL ? strcmp(address, "none") == 0 : store_directory(cluster->store) != NULL)
                return ASK_E_STORE;
        r = address != NULL ? ask_address(address, question, ret, &why)
                            : ask_leading(a->namespace_, cluster->kubeconfig, question, &leading, ret, &why);
        table_clean(why.msg);
        if (r < 0 && r != -EINTR && leading.heard && !leading.said) {
                (void) text_format(who, ASK_WHO_BYTES, "store %s, and not the extender: %s", cluster->store,
                                   why.msg);
                return ASK_E_STORE;
        }
        if (r < 0)
                return err_set(err, r, "%s", why.msg);
        (void) text_format(who, ASK_WHO_BYTES, "extender %s%s%s%s", address != NULL ? address : a->namespace_,
                           address != NULL ? "" : "/", leading.pod, address != NULL ? "" : ", which leads");
        return 0;
}
