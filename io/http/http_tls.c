/* The library below takes files once, at its start, and says only that it could not: here it is found out
 * which one is to blame, and each connection's session is given the credentials of its moment. */
#include "io/http/http_tls.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/metrics.h"
#include "base/text.h"
#include "io/read_file.h"
#include "io/tls/tls.h"
#include "io/tls/tls_certificate.h"

#define FILE_MAX_BYTES 1048576
#define LOOK_USEC      UINT64_C(1000000)

struct http_tls_credentials {
        unsigned references;
        char *pem[HTTP_TLS_FILES];
        gnutls_certificate_credentials_t credentials;
        int64_t expires_sec;
};

void http_tls_end(struct http_tls_credentials *c)
{
        if (c == NULL || --c->references > 0)
                return;
        if (c->credentials != NULL)
                gnutls_certificate_free_credentials(c->credentials);
        if (c->pem[1] != NULL)
                explicit_bzero(c->pem[1], strlen(c->pem[1]));
        for (size_t i = 0; i < HTTP_TLS_FILES; i++)
                free(c->pem[i]);
        free(c);
}

static int judge_files(const struct http_tls_files *files, char *const pem[HTTP_TLS_FILES], struct err *err)
{
        static const char *const kinds[HTTP_TLS_FILES] = { "certificate", "key", "client CA" };
        char from[HTTP_TLS_FILES][300];

        for (size_t i = 0; i < HTTP_TLS_FILES; i++)
                (void) text_format(from[i], sizeof(from[i]), "%s '%.200s'", kinds[i],
                                   files->names[i] != NULL ? files->names[i] : "");
        return tls_check(&(struct tls_identity){ .certificate = { pem[0], from[0] },
                                                 .key = { pem[1], from[1] },
                                                 .ca = { pem[2], from[2] } },
                         err);
}

/* When it ends, and may it be a server's: one that says nothing of its purpose may, as clients have it. */
static bool judge_own(const gnutls_datum_t *pem, int64_t *expires_sec)
{
        gnutls_x509_crt_t certificate;
        bool serves;

        if (gnutls_x509_crt_init(&certificate) < 0)
                return false;
        serves = gnutls_x509_crt_import(certificate, pem, GNUTLS_X509_FMT_PEM) >= 0 &&
                 gnutls_x509_crt_check_key_purpose(certificate, GNUTLS_KP_TLS_WWW_SERVER, 0) != 0;
        *expires_sec = gnutls_x509_crt_get_expiration_time(certificate);
        gnutls_x509_crt_deinit(certificate);
        return serves;
}

static int set_up(struct http_tls_credentials *c, const char *name, struct err *err)
{
        gnutls_datum_t data[HTTP_TLS_FILES] = { { 0 } };
        int r = gnutls_certificate_allocate_credentials(&c->credentials);

        for (size_t i = 0; i < HTTP_TLS_FILES && c->pem[i] != NULL; i++)
                data[i] = (gnutls_datum_t){ (unsigned char *) c->pem[i], (unsigned) strlen(c->pem[i]) };
        if (r >= 0)
                r = gnutls_certificate_set_x509_key_mem(c->credentials, &data[0], &data[1],
                                                        GNUTLS_X509_FMT_PEM);
        if (r >= 0 && c->pem[2] != NULL)
                r = gnutls_certificate_set_x509_trust_mem(c->credentials, &data[2], GNUTLS_X509_FMT_PEM);
        if (r < 0)
                return err_set(err, -EINVAL, "certificate '%.200s': TLS cannot be set up with it", name);
        if (!judge_own(&data[0], &c->expires_sec))
                return err_set(err, -EINVAL,
                               "certificate '%.200s': is not made for servers (extended key usage "
                               "serverAuth): no client would take it",
                               name);
        return 0;
}

/* @pair: whose certificate and key are taken instead of the files'; or NULL. @ret: untouched on failure */
static int read_files(const struct http_tls_files *files, const struct http_tls_credentials *pair,
                      struct http_tls_credentials **ret, struct err *err)
{
        struct http_tls_credentials *c = calloc(1, sizeof(*c));
        int r = 0;

        if (c == NULL)
                return err_set(err, -ENOMEM, "no memory for TLS");
        c->references = 1;
        for (size_t i = 0; i < HTTP_TLS_FILES && r == 0; i++)
                if (pair != NULL && i < 2)
                        r = (c->pem[i] = strdup(pair->pem[i])) != NULL ? 0 : -ENOMEM;
                else if (files->names[i] != NULL)
                        r = read_file(files->names[i], FILE_MAX_BYTES, &c->pem[i], NULL, err);
        if (r == 0)
                r = judge_files(files, c->pem, err);
        if (r == 0)
                r = set_up(c, files->names[0], err);
        if (r < 0)
                http_tls_end(c);
        else
                *ret = c;
        return r;
}

/* Return: is any of them another file, or another content, than when it was looked at before? */
static bool have_changed(struct http_tls *tls)
{
        bool changed = false;

        for (size_t i = 0; i < HTTP_TLS_FILES; i++) {
                struct stat *before = &tls->seen[i], now = { 0 };

                if (tls->files.names[i] != NULL)
                        (void) stat(tls->files.names[i], &now);
                changed = changed || now.st_dev != before->st_dev || now.st_ino != before->st_ino ||
                          now.st_size != before->st_size || now.st_mtim.tv_sec != before->st_mtim.tv_sec ||
                          now.st_mtim.tv_nsec != before->st_mtim.tv_nsec;
                *before = now;
        }
        return changed;
}

static int keep_names(struct http_tls *tls, const struct http_tls_files *files)
{
        const char **const from[] = { &tls->files.names[0], &tls->files.names[1], &tls->files.names[2],
                                      &tls->files.client_names };

        tls->files = *files;
        for (size_t i = 0; i < ARRAY_SIZE(from); i++)
                if (*from[i] != NULL && (tls->own[i] = strdup(*from[i])) == NULL)
                        return -ENOMEM;
                else
                        *from[i] = tls->own[i];
        return 0;
}

int http_tls_open(struct http_tls *tls, const struct http_tls_files *files, struct err *err)
{
        int r;

        *tls = (struct http_tls){ 0 };
        if (files->client_names != NULL && files->names[2] == NULL)
                return err_set(err, -EINVAL, "names of clients are known by certificates; give a client CA");
        if (files->names[0] == NULL && files->names[1] == NULL && files->names[2] == NULL)
                return 0;
        if (files->names[0] == NULL || files->names[1] == NULL)
                return err_set(err, -EINVAL, "TLS needs a certificate and its key%s",
                               files->names[2] != NULL ? "; a client CA alone protects nothing" : "");
        if (keep_names(tls, files) < 0)
                return err_set(err, -ENOMEM, "no memory for TLS");
        (void) have_changed(tls);
        r = read_files(&tls->files, NULL, &tls->now, err);
        if (r == 0)
                tls->expires_sec = tls->now->expires_sec;
        return r;
}

void http_tls_close(struct http_tls *tls)
{
        http_tls_end(TAKE(tls->now));
        for (size_t i = 0; i < ARRAY_SIZE(tls->own); i++)
                free(TAKE(tls->own[i]));
}

const char *http_tls_pem(const struct http_tls *tls, size_t i)
{
        return tls->now != NULL ? tls->now->pem[i] : NULL;
}

static void take(struct http_tls *tls, struct http_tls_credentials *newer)
{
        http_tls_end(tls->now);
        tls->now = newer;
        tls->expires_sec = newer->expires_sec;
        tls->reloads++;
}

/* The new files are of no use together, and who is trusted no longer must not gain by it: the CA's counts
 * beside the pair of before. */
static void take_ca(struct http_tls *tls)
{
        struct http_tls_credentials *newer = NULL;

        if (tls->files.names[2] != NULL)
                (void) read_files(&tls->files, tls->now, &newer, NULL);
        if (newer == NULL)
                return;
        if (strcmp(newer->pem[2], tls->now->pem[2]) != 0)
                take(tls, newer);
        else
                http_tls_end(newer);
}

static void look(struct http_tls *tls, uint64_t now_usec)
{
        struct http_tls_credentials *newer = NULL;
        struct err err = { 0 };

        if (now_usec < tls->looked_usec + LOOK_USEC)
                return;
        tls->looked_usec = now_usec;
        if (!have_changed(tls) && tls->trouble[0] == '\0')
                return;
        (void) read_files(&tls->files, NULL, &newer, &err);
        if (newer == NULL) {
                tls->reload_failures += strcmp(tls->trouble, err.msg) != 0;
                (void) text_copy(tls->trouble, sizeof(tls->trouble), err.msg);
                take_ca(tls);
                return;
        }
        take(tls, newer);
        tls->trouble[0] = '\0';
}

static gnutls_session_t session_of(struct MHD_Connection *connection)
{
        const union MHD_ConnectionInfo *info =
                MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);

        return info != NULL ? info->tls_session : NULL;
}

struct http_tls_credentials *http_tls_begin(struct http_tls *tls, struct MHD_Connection *connection,
                                            uint64_t now_usec)
{
        gnutls_session_t session = tls->now != NULL ? session_of(connection) : NULL;

        if (session == NULL)
                return NULL;
        look(tls, now_usec);
        if (gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->now->credentials) < 0)
                return NULL;
        tls->now->references++;
        return tls->now;
}

size_t http_tls_pending(struct MHD_Connection *connection)
{
        gnutls_session_t session = session_of(connection);

        return session != NULL ? gnutls_record_check_pending(session) : 0;
}

static bool has_dns_name(gnutls_x509_crt_t certificate)
{
        char name[256];
        size_t size = sizeof(name);
        int type = 0;

        for (unsigned i = 0; type >= 0 || type == GNUTLS_E_SHORT_MEMORY_BUFFER; i++, size = sizeof(name)) {
                type = gnutls_x509_crt_get_subject_alt_name(certificate, i, name, &size, NULL);
                if (type == GNUTLS_SAN_DNSNAME)
                        return true;
        }
        return false;
}

/* The common name is one where there is no DNS name, and nowhere else (RFC 6125, 6.4.4). */
static bool has_name(gnutls_x509_crt_t certificate, const char *names)
{
        char name[256], common[256] = "";
        size_t size = sizeof(common);

        if (!has_dns_name(certificate))
                (void) gnutls_x509_crt_get_dn_by_oid(certificate, GNUTLS_OID_X520_COMMON_NAME, 0, 0, common,
                                                     &size);
        while (names != NULL && *names != '\0') {
                size_t n = strcspn(names, ",");

                (void) text_format(name, sizeof(name), "%.*s", (int) n, names);
                if (name[0] != '\0' &&
                    (strcmp(name, common) == 0 || gnutls_x509_crt_check_hostname(certificate, name) != 0))
                        return true;
                names += n + (names[n] == ',');
        }
        return false;
}

/* By the CA of now; what the session was begun with is its own again then: it keeps pointers into it. */
static bool is_trusted(const struct http_tls *tls, const struct http_tls_credentials *begun,
                       gnutls_session_t session)
{
        unsigned status = 0;
        bool trusted = gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->now->credentials) >= 0 &&
                       gnutls_certificate_verify_peers2(session, &status) >= 0 && status == 0;

        return gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, begun->credentials) >= 0 && trusted;
}

bool http_tls_is_known(struct http_tls *tls, struct MHD_Connection *connection,
                       const struct http_tls_credentials *begun, uint64_t now_usec)
{
        gnutls_session_t session = begun != NULL ? session_of(connection) : NULL;
        unsigned count = 0;
        const gnutls_datum_t *shown = session != NULL ? gnutls_certificate_get_peers(session, &count) : NULL;
        gnutls_x509_crt_t certificate = NULL;
        bool known;

        look(tls, now_usec);
        if (shown == NULL || count == 0 || !is_trusted(tls, begun, session) ||
            gnutls_x509_crt_init(&certificate) < 0)
                return false;
        known = gnutls_x509_crt_import(certificate, &shown[0], GNUTLS_X509_FMT_DER) >= 0 &&
                tls_certificate_is_for(certificate, false) &&
                (tls->files.client_names == NULL || has_name(certificate, tls->files.client_names));
        gnutls_x509_crt_deinit(certificate);
        return known;
}

void http_tls_metrics(const struct http_tls *tls, const char *expiry, const char *reloads, struct text *page)
{
        if (tls->now == NULL)
                return;
        metrics_gauge(page, expiry, "When this server's certificate ends, in seconds since 1970",
                      (double) tls->expires_sec);
        metrics_family(page, reloads, METRIC_COUNTER, "Times that changed TLS files were read, by result");
        metrics_sample_uint64(page, reloads, METRIC_LABELS({ "result", "read" }), tls->reloads);
        metrics_sample_uint64(page, reloads, METRIC_LABELS({ "result", "failed" }), tls->reload_failures);
}
