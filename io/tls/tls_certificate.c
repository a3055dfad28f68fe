/* GnuTLS takes a certificate without the extension for anything; here it has to say it. */
#include "io/tls/tls_certificate.h"

#include <gnutls/gnutls.h>
#include <string.h>

bool tls_certificate_is_for(gnutls_x509_crt_t certificate, bool server)
{
        const char *wanted = server ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT;
        char oid[64];
        size_t size = sizeof(oid);

        for (unsigned i = 0; gnutls_x509_crt_get_key_purpose_oid(certificate, i, oid, &size, NULL) >= 0;
             i++, size = sizeof(oid))
                if (strcmp(oid, wanted) == 0)
                        return true;
        return false;
}
