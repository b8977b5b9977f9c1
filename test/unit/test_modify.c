/* SPDX-License-Identifier: BSD-3-Clause */
/* Modify QP: the whole table of transitions of every service, and the bounds of every attribute. */
#include "control_fixture.h"

static const char *const services[] = { "RC", "UC", "UD" };
#define SERVICES (sizeof(services) / sizeof(services[0]))

/* IBA vol. 1, table 91: what may follow what. */
static const char *const valid[SERVICES][ABI_QP_STATES] = { /* to RESET INIT RTR RTS SQD SQE ERR */
	[ABI_SERVICE_RC] = { [ABI_QP_RESET] = "yy....y", [ABI_QP_INIT] = "yyy...y", [ABI_QP_RTR] = "y..y..y", [ABI_QP_RTS] = "y..yy.y", [ABI_QP_SQD] = "y..yy.y", [ABI_QP_SQE] = ".......",
		[ABI_QP_ERR] = "y.....y" },
	[ABI_SERVICE_UC] = { [ABI_QP_RESET] = "yy....y", [ABI_QP_INIT] = "yyy...y", [ABI_QP_RTR] = "y..y..y", [ABI_QP_RTS] = "y..yy.y", [ABI_QP_SQD] = "y..yy.y", [ABI_QP_SQE] = "y..y..y",
		[ABI_QP_ERR] = "y.....y" },
	[ABI_SERVICE_UD] = { [ABI_QP_RESET] = "yy....y", [ABI_QP_INIT] = "yyy...y", [ABI_QP_RTR] = "y..y..y", [ABI_QP_RTS] = "y..yy.y", [ABI_QP_SQD] = "y..yy.y", [ABI_QP_SQE] = "y..y..y",
		[ABI_QP_ERR] = "y.....y" },
};

/* Only what sends without being answered has send errors that it survives. */
static bool has_state(enum abi_service service, uint32_t state)
{
	return state != ABI_QP_SQE || service != ABI_SERVICE_RC;
}

static void walk_transitions(enum abi_service service)
{
	struct fixture x = open_core_with(service, 0);
	struct abi_qp_attr a = usual();
	for (uint32_t from = 0; from < ABI_QP_STATES; from++)
		for (uint32_t to = 0; to < ABI_QP_STATES; to++) {
			const struct qp_transition *t = &qp_transitions[service][from][to];
			assert_int_equal(t->is_valid, valid[service][from][to] == 'y');
			if (!has_state(service, from))
				continue;
			go(&x, from);
			int rc = modify(&x, to, t->required, &a);
			assert_int_equal(rc, t->is_valid ? 0 : -EINVAL);
			if (rc) {
				assert_true(strlen(x.rep.text) > 20);
				assert_non_null(strstr(x.rep.text, services[service]));
			}
			assert_int_equal(state_of(&x), t->is_valid ? to : from);
		}
	core_free(x.core);
}

static void test_every_transition(void **state)
{
	for (unsigned service = 0; service < SERVICES; service++)
		walk_transitions((enum abi_service)service);
}

static void walk_attributes(enum abi_service service)
{
	struct fixture x = open_core_with(service, 0);
	struct abi_qp_attr a = usual();
	for (uint32_t from = 0; from < ABI_QP_STATES; from++)
		for (uint32_t to = 0; to < ABI_QP_STATES; to++) {
			const struct qp_transition *t = &qp_transitions[service][from][to];
			if (!t->is_valid || to == ABI_QP_RESET || to == ABI_QP_ERR)
				continue;
			for (unsigned bit = 2; bit <= 20; bit++) {
				go(&x, from);
				bool is_required = t->required >> bit & 1, is_optional = t->optional >> bit & 1;
				uint32_t mask = is_required ? t->required & ~(1u << bit) : t->required | 1u << bit;
				assert_int_equal(modify(&x, to, mask, &a), is_optional ? 0 : -EINVAL);
				assert_int_equal(state_of(&x), is_optional ? to : from);
			}
		}
	core_free(x.core);
}

static void test_each_required_attribute_and_no_other(void **state)
{
	for (unsigned service = 0; service < SERVICES; service++)
		walk_attributes((enum abi_service)service);
}

/* What IBA vol. 1, table 91 asks of each service on the way to RTS: the table beside the one that is used, so that neither is wrong alone. */
static void test_what_each_service_needs(void **state)
{
	const uint32_t init = ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_ACCESS_FLAGS, rtr = ABI_QP_AV | ABI_QP_PATH_MTU | ABI_QP_DEST_QPN | ABI_QP_RQ_PSN;
	const struct {
		enum abi_service service;
		uint32_t init, rtr, rts, sqe_to_rts;
	} rows[] = {
		{ ABI_SERVICE_RC, init, rtr | ABI_QP_MAX_DEST_RD_ATOMIC | ABI_QP_MIN_RNR_TIMER, ABI_QP_SQ_PSN | ABI_QP_TIMEOUT | ABI_QP_RETRY_CNT | ABI_QP_RNR_RETRY | ABI_QP_MAX_QP_RD_ATOMIC, 0 },
		{ ABI_SERVICE_UC, init, rtr, ABI_QP_SQ_PSN, ABI_QP_ACCESS_FLAGS },
		{ ABI_SERVICE_UD, ABI_QP_PKEY_INDEX | ABI_QP_PORT | ABI_QP_QKEY, 0, ABI_QP_SQ_PSN, ABI_QP_QKEY },
	};
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct qp_transition(*t)[ABI_QP_STATES] = qp_transitions[rows[i].service];
		assert_int_equal(t[ABI_QP_RESET][ABI_QP_INIT].required, rows[i].init);
		assert_int_equal(t[ABI_QP_INIT][ABI_QP_RTR].required, rows[i].rtr);
		assert_int_equal(t[ABI_QP_RTR][ABI_QP_RTS].required, rows[i].rts);
		assert_int_equal(t[ABI_QP_SQE][ABI_QP_RTS].optional, rows[i].sqe_to_rts);
	}
}

/* known-bugs: 6 40 */
static void test_bounds_of_attributes(void **state)
{
	struct fixture x = open_core(0);
	const uint32_t rtr = qp_transitions[ABI_SERVICE_RC][ABI_QP_INIT][ABI_QP_RTR].required, rts = qp_transitions[ABI_SERVICE_RC][ABI_QP_RTR][ABI_QP_RTS].required;
	struct abi_qp_attr a;
#define REFUSED(from, to, mask, field, value) \
	do { \
		go(&x, from); \
		a = usual(); \
		a.field = (value); \
		assert_int_equal(modify(&x, to, mask, &a), -EINVAL); \
		assert_int_equal(state_of(&x), from); \
	} while (0)
	REFUSED(ABI_QP_INIT, ABI_QP_RTR, rtr, path_mtu, 0);
	REFUSED(ABI_QP_INIT, ABI_QP_RTR, rtr, path_mtu, 6);
	REFUSED(ABI_QP_INIT, ABI_QP_RTR, rtr, dest_qpn, 0);
	REFUSED(ABI_QP_INIT, ABI_QP_RTR, rtr, dest_qpn, 1);
	REFUSED(ABI_QP_INIT, ABI_QP_RTR, rtr, dest_qpn, 0xffffff);
	REFUSED(ABI_QP_INIT, ABI_QP_RTR, rtr, rq_psn, 0x1000000);
	REFUSED(ABI_QP_INIT, ABI_QP_RTR, rtr, max_dest_rd_atomic, 129);
	REFUSED(ABI_QP_INIT, ABI_QP_RTR, rtr, min_rnr_timer, 32);
	REFUSED(ABI_QP_INIT, ABI_QP_RTR, rtr, av.sgid_index, 1);
	REFUSED(ABI_QP_INIT, ABI_QP_RTR, rtr, av.sgid_index, 0xffffffff);
	REFUSED(ABI_QP_INIT, ABI_QP_RTR, rtr, av.dgid[0], 0xfd);
	REFUSED(ABI_QP_RTR, ABI_QP_RTS, rts, timeout, 32);
	REFUSED(ABI_QP_RTR, ABI_QP_RTS, rts, retry_cnt, 8);
	REFUSED(ABI_QP_RTR, ABI_QP_RTS, rts, rnr_retry, 8);
	REFUSED(ABI_QP_RTR, ABI_QP_RTS, rts, sq_psn, 0xffffffff);
	REFUSED(ABI_QP_RTR, ABI_QP_RTS, rts, max_rd_atomic, 129);
	REFUSED(ABI_QP_RESET, ABI_QP_INIT, qp_transitions[ABI_SERVICE_RC][ABI_QP_RESET][ABI_QP_INIT].required, port_num, 2);
	REFUSED(ABI_QP_RESET, ABI_QP_INIT, qp_transitions[ABI_SERVICE_RC][ABI_QP_RESET][ABI_QP_INIT].required, pkey_index, 1);
	REFUSED(ABI_QP_RESET, ABI_QP_INIT, qp_transitions[ABI_SERVICE_RC][ABI_QP_RESET][ABI_QP_INIT].required, access, 16);
	REFUSED(ABI_QP_INIT, ABI_QP_INIT, ABI_QP_CUR_STATE, cur_state, ABI_QP_RTS);
	REFUSED(ABI_QP_INIT, 7, 0, port_num, 1);
#undef REFUSED
	core_free(x.core);
}

/* IBA vol. 1, 10.2.4.2: with such a Q_Key a program could speak to others' QP 1. */
/* known-bugs: N3 */
static void test_controlled_qkeys_need_privilege(void **state)
{
	for (unsigned may = 0; may < 2; may++) {
		struct fixture x = open_core_with(ABI_SERVICE_UD, 0);
		struct abi_qp_attr a = usual();
		uint32_t init = qp_transitions[ABI_SERVICE_UD][ABI_QP_RESET][ABI_QP_INIT].required;
		x.core->limits.may_control = may;
		a.qkey = 0x80010000;
		assert_int_equal(modify(&x, ABI_QP_INIT, init, &a), may ? 0 : -EPERM);
		assert_int_equal(state_of(&x), may ? ABI_QP_INIT : ABI_QP_RESET);
		a.qkey = 0x7fffffff;
		assert_int_equal(modify(&x, ABI_QP_INIT, init, &a), 0);
		assert_int_equal(ask_handle(&x, ABI_QUERY_QP, x.qp), 0);
		assert_int_equal(x.rep.query_qp.attr.qkey, 0x7fffffff);
		core_free(x.core);
	}
}

static void test_modes_that_may_control_qkeys(void **state)
{
	for (uint8_t mode = 0; mode < 3; mode++) {
		struct core_config config = { .name = "test", .mode = mode, .max_frame = 1514, .seed = 1 };
		struct core *c;
		assert_int_equal(core_new(&c, &config, 0), 0);
		assert_int_equal(c->limits.may_control, mode != 2);
		core_free(c);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_transition),
		cmocka_unit_test(test_each_required_attribute_and_no_other),
		cmocka_unit_test(test_what_each_service_needs),
		cmocka_unit_test(test_bounds_of_attributes),
		cmocka_unit_test(test_controlled_qkeys_need_privilege),
		cmocka_unit_test(test_modes_that_may_control_qkeys),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
