/* Stands in for the certificates of mbedTLS's self-test, which nobody runs: x509.c of Debian's archive names
 * them, and the linker would take 54 KB of them into a program that has to stay below 2 MB. */
#include <stddef.h>

extern const char mbedtls_test_ca_crt[], mbedtls_test_cli_crt[];
extern const size_t mbedtls_test_ca_crt_len, mbedtls_test_cli_crt_len;

const char mbedtls_test_ca_crt[] = "", mbedtls_test_cli_crt[] = "";
const size_t mbedtls_test_ca_crt_len = sizeof(mbedtls_test_ca_crt),
             mbedtls_test_cli_crt_len = sizeof(mbedtls_test_cli_crt);
