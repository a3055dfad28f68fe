/* YAML or a pod's mounted files into addresses, authorities and credentials. */
#include "store/kubernetes/kubeconfig.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json/json_table.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "io/read_file.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define FILE_MAX_BYTES  1048576
#define FILES_MAX       16

static bool is_in_cluster(void)
{
        return getenv("KUBERNETES_SERVICE_HOST") != NULL && getenv("KUBERNETES_SERVICE_PORT") != NULL &&
               access(SERVICE_ACCOUNT "/token", R_OK) == 0;
}

static int load_in_cluster(struct kubeconfig *c, struct err *err)
{
        const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
        struct text server = { 0 };

        assert(host != NULL && port != NULL); /* is_in_cluster() */
        text_printf(&server, strchr(host, ':') != NULL ? "https://[%s]:%s" : "https://%s:%s", host, port);
        c->server = text_take(&server, NULL);
        c->ca_file = strdup(SERVICE_ACCOUNT "/ca.crt");
        c->token_file = strdup(SERVICE_ACCOUNT "/token");
        if (read_file(SERVICE_ACCOUNT "/namespace", FILE_MAX_BYTES, &c->namespace_, NULL, NULL) < 0)
                c->namespace_ = strdup("default");
        if (c->server == NULL || c->ca_file == NULL || c->token_file == NULL || c->namespace_ == NULL)
                return err_set(err, -ENOMEM, "no memory for the service account");
        return 0;
}

struct file {
        const char *path;
        json_t *json;
};

struct files {
        struct file file[FILES_MAX];
        size_t count;
};

/* The entry of that name in the first file that has it: {"name": ..., "cluster": {...}} -> the inner object.
 */
static const json_t *find(const struct files *files, const char *list, const char *inner, const char *name,
                          const char **ret_path)
{
        for (size_t i = 0; name != NULL && i < files->count; i++) {
                struct json_field root = json_field_root(files->file[i].json),
                                  entries = json_field_get(&root, list);

                for (size_t k = 0; k < json_field_count(&entries); k++) {
                        struct json_field entry = json_field_at(&entries, k);
                        const char *is = "";

                        if (json_field_string(&entry, "name", &is, NULL) != 0 || strcmp(is, name) != 0)
                                continue;
                        *ret_path = files->file[i].path;
                        return json_field_get(&entry, inner).value;
                }
        }
        return NULL;
}

static int refuse(const struct json_field *at, void *field, struct err *err)
{
        (void) field;
        (void) json_field_error(at, err,
                                "is not supported here; use a token, a tokenFile or a client certificate");
        return -ENOTSUP;
}

/* clang-format off */
#define AT(member) JSON_TABLE_AT(struct kubeconfig, member)
#define SIZE       .size_bytes = sizeof(struct kubeconfig)
static const struct json_table_row cluster_rows[] = {
        { "server",                     JSON_TABLE_STRING, AT(server), .required = true },
        { "certificate-authority",      JSON_TABLE_STRING, AT(ca_file) },
        { "certificate-authority-data", JSON_TABLE_STRING, AT(ca_pem) },
        { "tls-server-name",            JSON_TABLE_STRING, AT(tls_server_name) },
        { "proxy-url",                  JSON_TABLE_STRING, AT(proxy) },
        { "insecure-skip-tls-verify",   JSON_TABLE_BOOL,   AT(insecure) },
        { .name = NULL },
};
static const struct json_table_row user_rows[] = {
        { "exec",                       JSON_TABLE_CUSTOM, SIZE, .decode = refuse },
        { "auth-provider",              JSON_TABLE_CUSTOM, SIZE, .decode = refuse },
        { "username",                   JSON_TABLE_CUSTOM, SIZE, .decode = refuse },
        { "password",                   JSON_TABLE_CUSTOM, SIZE, .decode = refuse },
        { "as",                         JSON_TABLE_CUSTOM, SIZE, .decode = refuse }, /* another's rights are meant */
        { "as-uid",                     JSON_TABLE_CUSTOM, SIZE, .decode = refuse },
        { "as-groups",                  JSON_TABLE_CUSTOM, SIZE, .decode = refuse },
        { "as-user-extra",              JSON_TABLE_CUSTOM, SIZE, .decode = refuse },
        { "token",                      JSON_TABLE_STRING, AT(token) },
        { "tokenFile",                  JSON_TABLE_STRING, AT(token_file) },
        { "client-certificate",         JSON_TABLE_STRING, AT(certificate_file) },
        { "client-certificate-data",    JSON_TABLE_STRING, AT(certificate_pem) },
        { "client-key",                 JSON_TABLE_STRING, AT(key_file) },
        { "client-key-data",            JSON_TABLE_STRING, AT(key_pem) },
        { .name = NULL },
};
static const struct json_table_row namespace_rows[] = {
        { "namespace",                  JSON_TABLE_STRING, AT(namespace_) },
        { .name = NULL },
};
/* clang-format on */
static const struct json_table cluster_table = { .rows = cluster_rows, SIZE },
                               user_table = { .rows = user_rows, SIZE },
                               namespace_table = { .rows = namespace_rows, SIZE };

void kubeconfig_free(struct kubeconfig *c)
{
        json_table_free(&cluster_table, c);
        json_table_free(&user_table, c);
        json_table_free(&namespace_table, c);
        *c = (struct kubeconfig){ 0 };
}

/* What is written and empty is as if it were not written. */
static int decode(const struct json_table *table, const json_t *value, struct kubeconfig *c, struct err *err)
{
        int r = json_table_decode(table, value, c, err);

        for (const struct json_table_row *row = table->rows; row->name != NULL; row++) {
                char **field = (char **) (void *) ((char *) c + row->offset);

                if (row->kind != JSON_TABLE_STRING || *field == NULL || (*field)[0] != '\0')
                        continue;
                free(*field);
                *field = NULL;
        }
        return r;
}

/* A path is relative to the file that it stands in. Return: 0 or -ENOMEM. */
static int beside(const char *file, char **path)
{
        const char *slash = strrchr(file, '/');
        struct text whole = { 0 };

        if (*path == NULL || (*path)[0] == '/' || slash == NULL)
                return 0;
        text_printf(&whole, "%.*s/%s", (int) (slash - file), file, *path);
        free(*path);
        *path = text_take(&whole, NULL);
        return *path == NULL ? -ENOMEM : 0;
}

/* Text in base64 -> what it holds. */
static int unpack(const char *name, char **pem, struct err *err)
{
        char *encoded = *pem;
        size_t size;

        if (encoded == NULL)
                return 0;
        *pem = base64_decode(encoded, &size);
        free(encoded);
        return *pem == NULL ? err_set(err, -EBADMSG, "%s: is not base64", name) : 0;
}

static int read_cluster(const json_t *cluster, const char *path, struct kubeconfig *c, struct err *err)
{
        int r = decode(&cluster_table, cluster, c, err);
        size_t length;

        if (r < 0)
                return r;
        if (c->server == NULL ||
            (!text_starts_with(c->server, "https://") && !text_starts_with(c->server, "http://")))
                return err_set(err, -EBADMSG, "server: must begin with https:// (or http://)");
        length = strlen(c->server);
        if (c->server[length - 1] == '/')
                c->server[length - 1] = '\0';
        r = unpack("certificate-authority-data", &c->ca_pem, err);
        return r < 0 ? r : beside(path, &c->ca_file);
}

static int read_user(const json_t *user, const char *path, struct kubeconfig *c, struct err *err)
{
        int r = decode(&user_table, user, c, err);

        if (r == 0)
                r = beside(path, &c->token_file);
        if (r == 0)
                r = beside(path, &c->certificate_file);
        if (r == 0)
                r = beside(path, &c->key_file);
        if (r == 0)
                r = unpack("client-certificate-data", &c->certificate_pem, err);
        return r < 0 ? r : unpack("client-key-data", &c->key_pem, err);
}

static const char *text_in(const json_t *object, const char *name)
{
        struct json_field root = json_field_root(object);
        const char *text = NULL;

        (void) json_field_string(&root, name, &text, NULL);
        return text != NULL && text[0] != '\0' ? text : NULL;
}

static const char *current_context(const struct files *files)
{
        const char *name = NULL;

        for (size_t i = 0; name == NULL && i < files->count; i++)
                name = text_in(files->file[i].json, "current-context");
        return name;
}

static int read_context(const struct files *files, struct kubeconfig *c, struct err *err)
{
        const char *name = current_context(files), *path = "", *cluster_name, *user_name;
        const json_t *context, *cluster, *user;
        int r;

        if (name == NULL)
                return err_set(err, -EBADMSG, "current-context: is missing");
        context = find(files, "contexts", "context", name, &path);
        if (context == NULL)
                return err_set(err, -EBADMSG, "there is no context '%s'", name);
        cluster_name = text_in(context, "cluster");
        user_name = text_in(context, "user");
        cluster = find(files, "clusters", "cluster", cluster_name, &path);
        if (cluster == NULL)
                return err_set(err, -EBADMSG, "context '%s': there is no cluster '%s'", name,
                               cluster_name != NULL ? cluster_name : "");
        r = read_cluster(cluster, path, c, err);
        if (r < 0)
                return err_wrap(err, r, "cluster '%s'", cluster_name);
        user = find(files, "users", "user", user_name, &path);
        r = user != NULL ? read_user(user, path, c, err) : 0;
        if (r < 0)
                return err_wrap(err, r, "user '%s'", user_name);
        r = decode(&namespace_table, context, c, err);
        if (r == 0 && c->namespace_ == NULL)
                c->namespace_ = strdup("default");
        return r < 0 ? r : c->namespace_ == NULL ? -ENOMEM : 0;
}

static int add_file(struct files *files, const char *path, struct err *err)
{
        CLEANUP(free_p) char *bytes = NULL;
        struct file *file = &files->file[files->count];
        int r = read_file(path, FILE_MAX_BYTES, &bytes, NULL, err);

        if (r < 0)
                return r;
        r = yaml_parse(bytes, strlen(bytes), &file->json, err);
        if (r < 0)
                return err_wrap(err, r, "kubeconfig '%s'", path);
        file->path = path;
        files->count++;
        return 0;
}

/* Of a list of files those that are not there are left out, as kubectl does; of one, its absence is an error.
 */
static int load_files(char *list, struct kubeconfig *c, struct err *err)
{
        struct files files = { 0 };
        bool alone = strchr(list, ':') == NULL;
        char *rest = NULL;
        int r = 0;

        for (char *path = strtok_r(list, ":", &rest); path != NULL && r == 0;
             path = strtok_r(NULL, ":", &rest)) {
                if (files.count == FILES_MAX)
                        r = err_set(err, -E2BIG, "the list has more than %d files: '%s' is too many",
                                    FILES_MAX, path);
                else
                        r = add_file(&files, path, err);
                if (r == -ENOENT && !alone)
                        r = 0;
        }
        if (r == 0)
                r = files.count == 0 ? err_set(err, -ENOENT, "none of the kubeconfig files is there")
                                     : read_context(&files, c, err);
        if (r < 0 && files.count > 0)
                r = err_wrap(err, r, "kubeconfig '%s'", files.file[0].path);
        for (size_t i = 0; i < files.count; i++)
                json_decref(files.file[i].json);
        return r;
}

int kubeconfig_load(const char *path, struct kubeconfig *ret, struct err *err)
{
        const char *environment = getenv("KUBECONFIG"), *home = getenv("HOME");
        struct text list = { 0 };
        int r;

        *ret = (struct kubeconfig){ 0 };
        if (path == NULL && is_in_cluster())
                return load_in_cluster(ret, err);
        if (path != NULL)
                text_append(&list, path);
        else if (environment != NULL && environment[0] != '\0')
                text_append(&list, environment);
        else if (home != NULL)
                text_printf(&list, "%s/.kube/config", home);
        if (list.data == NULL)
                return err_set(err, -ENOENT,
                               "this is no pod, and there is no kubeconfig: give one, or set KUBECONFIG");
        r = load_files(list.data, ret, err);
        text_free(&list);
        if (r == -ENOENT && path == NULL && (environment == NULL || environment[0] == '\0'))
                return err_set(err, r,
                               "this is no pod, and there is no ~/.kube/config: give --kubeconfig FILE, set "
                               "KUBECONFIG, or "
                               "name another store with --store dir:PATH");
        return r;
}
