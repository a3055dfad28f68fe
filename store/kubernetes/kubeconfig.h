/* Kubeconfig: where the API server is and who we are, from a kubeconfig file or from inside a pod.
 *
 * Understood: clusters (server, certificate-authority[-data], insecure-skip-tls-verify, tls-server-name,
 * proxy-url), users (token, tokenFile, client-certificate[-data], client-key[-data]), contexts. Relative
 * paths are relative to their file. Not understood, and said so: exec and auth-provider plugins, passwords.
 */
#pragma once

#include <stdbool.h>

#include "base/err.h"

struct kubeconfig {
        char *server; /* no trailing slash */
        char *ca_file, *ca_pem, *certificate_file, *certificate_pem, *key_file, *key_pem;
        char *token, *token_file; /* the file is read again as it changes */
        char *tls_server_name, *proxy;
        char *namespace_; /* of the context or the pod; "default" */
        bool insecure;
};

/* kubeconfig_load() - @path: a file; or NULL: inside a pod its service account, else $KUBECONFIG (a list of
 * at most 16 files separated by ':', the first that defines something wins), else ~/.kube/config. Return: 0;
 * -ENOENT (nowhere to be found), -EBADMSG, -ENOTSUP (a plugin), -E2BIG (more files). @ret is released with
 * kubeconfig_free(), also after a failure. */
int kubeconfig_load(const char *path, struct kubeconfig *ret, struct err *err);
void kubeconfig_free(struct kubeconfig *config);
