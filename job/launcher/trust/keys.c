/* From options and files to one side of TLS: who is a manager's peer, and under which names. */
#include "job/launcher/trust/keys.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/text.h"
#include "io/read_file.h"

#define FILE_MAX_BYTES ((size_t) 1 << 20)

/* The three files of an identity as they are read: their text, and what is said of them. */
struct files {
        char *text[3];
        char from[3][300];
};

static void files_free(struct files *files)
{
        for (size_t i = 0; i < ARRAY_SIZE(files->text); i++)
                free(files->text[i]);
}

static int read_files(struct files *files, const char *const options[], const char *const paths[],
                      size_t count, struct tls_identity *ret, struct err *err)
{
        struct tls_pem *const parts[] = { &ret->certificate, &ret->key, &ret->ca };

        for (size_t i = 0; i < count; i++) {
                int r = read_file(paths[i], FILE_MAX_BYTES, &files->text[i], NULL, err);

                if (r < 0)
                        return err_set(err, r,
                                       "%s: '%.200s': %s; the file must be there (of a pod: in its Secret)",
                                       options[i], paths[i], strerror(-r));
                (void) text_format(files->from[i], sizeof(files->from[i]), "%s: '%.200s'", options[i],
                                   paths[i]);
                *parts[i] = (struct tls_pem){ files->text[i], files->from[i] };
        }
        return 0;
}

static int read_own(struct files *files, const struct keys *keys, struct tls_identity *ret, struct err *err)
{
        static const char *const options[] = { "--tls-cert", "--tls-key", "--tls-ca" };
        const char *const paths[] = { keys->certificate, keys->key, keys->ca };

        for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
                if (paths[i] == NULL)
                        return err_set(err, -EINVAL,
                                       "%s is missing; --tls-cert, --tls-key and --tls-ca are given together",
                                       options[i]);
        return read_files(files, options, paths, ARRAY_SIZE(paths), ret, err);
}

static int read_status(struct files *files, const char *folder, struct tls_identity *ret, struct err *err)
{
        static const char *const options[] = { "--tls-status", "--tls-status" };
        static const char *const names[] = { "tls.crt", "tls.key" };
        char paths[ARRAY_SIZE(names)][512];

        for (size_t i = 0; i < ARRAY_SIZE(names); i++)
                if (!text_format(paths[i], sizeof(paths[i]), "%s/%s", folder, names[i]))
                        return err_set(err, -ENAMETOOLONG, "--tls-status: '%.200s' is too long", folder);
        return read_files(files, options, (const char *const[]){ paths[0], paths[1] }, ARRAY_SIZE(paths), ret,
                          err);
}

/* "10.0.0.1:7000" and "[::1]:7000" without the port and the brackets. */
static void host_of(const char *address, char ret[TLS_NAME_BYTES])
{
        const char *colon = strrchr(address, ':');
        size_t length = colon == NULL ? strlen(address) : (size_t) (colon - address);

        if (length >= 2 && address[0] == '[' && address[length - 1] == ']') {
                address++;
                length -= 2;
        }
        if (length >= TLS_NAME_BYTES)
                length = TLS_NAME_BYTES - 1;
        memcpy(ret, address, length);
        ret[length] = '\0';
}

/* mpirun's start agents call the manager with its own certificate: better refused now than when they do. */
static int may_call(const struct tls_options *manager, struct tls **tls, struct err *err)
{
        const struct tls_options options = { .identity = manager->identity, .name = manager->name };
        struct tls *caller = NULL;
        int r = tls_new(&options, &caller, err);

        tls_free(caller);
        if (r < 0)
                tls_free(TAKE(*tls));
        return r;
}

int keys_open(const struct keys *keys, const char *address, bool manager, struct tls **ret, struct err *err)
{
        struct tls_options options = { .server = manager,
                                       .name_hint = "see --tls-name",
                                       .peer = manager ? "group" : "manager",
                                       .authority = "this job's CA" };
        struct files own = { 0 }, status = { 0 };
        char host[TLS_NAME_BYTES];
        int r;

        *ret = NULL;
        if (keys->certificate == NULL && keys->key == NULL && keys->ca == NULL)
                return 0;
        host_of(address, host);
        options.name = keys->name != NULL ? keys->name : host;
        options.client_name = manager ? keys->group_name : NULL;
        r = read_own(&own, keys, &options.identity, err);
        if (r == 0 && manager && keys->status != NULL) {
                options.other_name = KEYS_STATUS_NAME;
                r = read_status(&status, keys->status, &options.other, err);
        }
        if (r == 0)
                r = tls_new(&options, ret, err);
        if (r == 0 && manager)
                r = may_call(&options, ret, err);
        files_free(&own);
        files_free(&status);
        return r;
}
