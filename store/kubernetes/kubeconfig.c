/* YAML or a pod's mounted files into addresses, authorities and credentials. */
#include "store/kubernetes/kubeconfig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/cleanup.h"
#include "base/json/json_field.h"
#include "base/text.h"
#include "base/yaml/yaml_parse.h"
#include "io/read_file.h"

#define SERVICE_ACCOUNT "/var/run/secrets/kubernetes.io/serviceaccount"
#define FILE_MAX_BYTES  1048576
#define FILES_MAX       16

void kubeconfig_free(struct kubeconfig *c)
{
        char **fields[] = { &c->server,          &c->ca_file,         &c->ca_pem,  &c->certificate_file,
                            &c->certificate_pem, &c->key_file,        &c->key_pem, &c->token,
                            &c->token_file,      &c->tls_server_name, &c->proxy,   &c->namespace_ };

        for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
                free(*fields[i]);
        *c = (struct kubeconfig){ 0 };
}

static bool is_in_cluster(void)
{
        return getenv("KUBERNETES_SERVICE_HOST") != NULL && getenv("KUBERNETES_SERVICE_PORT") != NULL &&
               access(SERVICE_ACCOUNT "/token", R_OK) == 0;
}

static int load_in_cluster(struct kubeconfig *c, struct err *err)
{
        const char *host = getenv("KUBERNETES_SERVICE_HOST"), *port = getenv("KUBERNETES_SERVICE_PORT");
        struct text server = { 0 };

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
static json_t *find(const struct files *files, const char *list, const char *inner, const char *name,
                    const char **ret_path)
{
        for (size_t i = 0; name != NULL && i < files->count; i++) {
                json_t *entries = json_object_get(files->file[i].json, list), *entry;
                size_t index;

                json_array_foreach(entries, index, entry)
                {
                        const char *is = json_string_value(json_object_get(entry, "name"));

                        if (is == NULL || strcmp(is, name) != 0)
                                continue;
                        *ret_path = files->file[i].path;
                        return json_object_get(entry, inner);
                }
        }
        return NULL;
}

static int copy_text(const json_t *object, const char *name, char **field, struct err *err)
{
        struct json_field root = json_field_root(object);
        const char *value = NULL;
        int r = json_field_string(&root, name, &value, err);

        if (r != 0 || value[0] == '\0')
                return r < 0 ? r : 0;
        *field = strdup(value);
        return *field == NULL ? err_set(err, -ENOMEM, "no memory for '%s'", name) : 0;
}

static int copy_path(const json_t *object, const char *name, const char *beside, char **field,
                     struct err *err)
{
        const char *slash = strrchr(beside, '/');
        struct text path = { 0 };
        int r = copy_text(object, name, field, err);

        if (r < 0 || *field == NULL || (*field)[0] == '/' || slash == NULL)
                return r;
        text_printf(&path, "%.*s/%s", (int) (slash - beside), beside, *field);
        free(*field);
        *field = text_take(&path, NULL);
        return *field == NULL ? err_set(err, -ENOMEM, "no memory for '%s'", name) : 0;
}

static int copy_pem(const json_t *object, const char *name, char **field, struct err *err)
{
        CLEANUP(free_p) char *encoded = NULL;
        size_t size;
        int r = copy_text(object, name, &encoded, err);

        if (r < 0 || encoded == NULL)
                return r;
        *field = base64_decode(encoded, &size);
        return *field == NULL ? err_set(err, -EBADMSG, "%s: is not base64", name) : 0;
}

static int read_cluster(const json_t *cluster, const char *path, struct kubeconfig *c, struct err *err)
{
        struct json_field root = json_field_root(cluster);
        size_t length;
        int r = json_field_require(&root, "server", err);

        if (r == 0)
                r = copy_text(cluster, "server", &c->server, err);
        if (r == 0)
                r = copy_path(cluster, "certificate-authority", path, &c->ca_file, err);
        if (r == 0)
                r = copy_pem(cluster, "certificate-authority-data", &c->ca_pem, err);
        if (r == 0)
                r = copy_text(cluster, "tls-server-name", &c->tls_server_name, err);
        if (r == 0)
                r = copy_text(cluster, "proxy-url", &c->proxy, err);
        if (r == 0)
                r = json_field_bool(&root, "insecure-skip-tls-verify", &c->insecure, err);
        if (r < 0)
                return r;
        if (c->server == NULL ||
            (!text_starts_with(c->server, "https://") && !text_starts_with(c->server, "http://")))
                return err_set(err, -EBADMSG, "server: must begin with https:// (or http://)");
        length = strlen(c->server);
        if (c->server[length - 1] == '/')
                c->server[length - 1] = '\0';
        return 0;
}

static int read_user(const json_t *user, const char *path, struct kubeconfig *c, struct err *err)
{
        static const char *const plugins[] = { "exec", "auth-provider", "username", "password" };
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(plugins); i++)
                if (json_object_get(user, plugins[i]) != NULL)
                        return err_set(
                                err, -ENOTSUP,
                                "%s: is not supported here; use a token, a tokenFile or a client certificate",
                                plugins[i]);
        r = copy_text(user, "token", &c->token, err);
        if (r == 0)
                r = copy_path(user, "tokenFile", path, &c->token_file, err);
        if (r == 0)
                r = copy_path(user, "client-certificate", path, &c->certificate_file, err);
        if (r == 0)
                r = copy_pem(user, "client-certificate-data", &c->certificate_pem, err);
        if (r == 0)
                r = copy_path(user, "client-key", path, &c->key_file, err);
        return r < 0 ? r : copy_pem(user, "client-key-data", &c->key_pem, err);
}

static const char *current_context(const struct files *files)
{
        for (size_t i = 0; i < files->count; i++) {
                const char *name = json_string_value(json_object_get(files->file[i].json, "current-context"));

                if (name != NULL && name[0] != '\0')
                        return name;
        }
        return NULL;
}

static int read_context(const struct files *files, struct kubeconfig *c, struct err *err)
{
        const char *name = current_context(files), *path = "", *cluster_name, *user_name;
        json_t *context, *cluster, *user;
        int r;

        if (name == NULL)
                return err_set(err, -EBADMSG, "current-context: is missing");
        context = find(files, "contexts", "context", name, &path);
        if (context == NULL)
                return err_set(err, -EBADMSG, "there is no context '%s'", name);
        cluster_name = json_string_value(json_object_get(context, "cluster"));
        user_name = json_string_value(json_object_get(context, "user"));
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
        r = copy_text(context, "namespace", &c->namespace_, err);
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

        for (char *path = strtok_r(list, ":", &rest); path != NULL && r == 0 && files.count < FILES_MAX;
             path = strtok_r(NULL, ":", &rest)) {
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
