// SPDX-License-Identifier: GPL-2.0-only
/*
 * The hooks, and the calls of functions that no header declares, rely on the parameters that
 * those functions have, and readers of a structure that none declares on its members. The
 * kernel has all of them in its BTF, which newer ones let modules read.
 */
#include <linux/btf.h>
#include <linux/module.h>
#include <linux/static_call.h>
#include <linux/string.h>

#include "compat.h"
#include "params.h"
#include "symbol.h"

typedef s32 vk_btf_find_fn(const char *name, u32 kind, struct btf **btf);

DEFINE_STATIC_CALL_NULL(vk_btf_find, vk_btf_find_fn);
DEFINE_STATIC_CALL_NULL(vk_btf_put, btf_put);
DEFINE_STATIC_CALL_NULL(vk_btf_name, btf_name_by_offset);

static bool vk_has_btf;

void vk_params_init(void)
{
	vk_btf_find_fn *find = vk_exported("bpf_find_btf_id");
	void *put = vk_symbol("btf_put"), *name = vk_symbol("btf_name_by_offset");

	if (!find || !put || !name)
		return;
	static_call_update(vk_btf_find, find);
	static_call_update(vk_btf_put, put);
	static_call_update(vk_btf_name, name);
	vk_has_btf = true;
}

/* The type that typedefs and qualifiers are of. */
static const struct btf_type *vk_type(const struct btf *btf, u32 id)
{
	const struct btf_type *t = btf_type_by_id(btf, id);

	while (t && (btf_kind(t) == BTF_KIND_TYPEDEF || btf_kind(t) == BTF_KIND_CONST ||
		     btf_kind(t) == BTF_KIND_VOLATILE || btf_kind(t) == BTF_KIND_RESTRICT ||
		     btf_kind(t) == BTF_KIND_TYPE_TAG))
		t = btf_type_by_id(btf, t->type);
	return t;
}

static char vk_pointer_letter(const struct btf *btf, const struct btf_type *to)
{
	const char *name = to && btf_kind(to) == BTF_KIND_STRUCT ?
		static_call(vk_btf_name)(btf, to->name_off) : "";

	return !strcmp(name, "kvm_vcpu") ? 'v' : !strcmp(name, "kvm") ? 'k' :
	       !strcmp(name, "msr_data") ? 'm' : 'p';
}

static char vk_letter(const struct btf *btf, u32 id)
{
	const struct btf_type *t = vk_type(btf, id);

	switch (t ? btf_kind(t) : BTF_KIND_UNKN) {
	case BTF_KIND_PTR:
		return vk_pointer_letter(btf, vk_type(btf, t->type));
	case BTF_KIND_INT:
	case BTF_KIND_ENUM:
		return t->size <= 4 ? 'i' : 'l';
	case BTF_KIND_ARRAY:
		return 'a';
	default:
		return '?';
	}
}

/* The type of the @i-th parameter of a function, or member of a structure. */
static u32 vk_part(const struct btf_type *t, u32 i)
{
	return btf_kind(t) == BTF_KIND_FUNC_PROTO ? ((const struct btf_param *)(t + 1))[i].type :
						    ((const struct btf_member *)(t + 1))[i].type;
}

static bool vk_parts_are(const struct btf *btf, const struct btf_type *t, const char *letters)
{
	u32 i;

	for (i = 0; i < btf_vlen(t); i++)
		if (vk_letter(btf, vk_part(t, i)) != letters[i])
			return false;
	return !letters[i];
}

static int vk_check(const char *name, u32 kind, const char *letters)
{
	const struct btf_type *t;
	struct btf *btf = NULL;
	bool same;
	s32 id = vk_has_btf ? static_call(vk_btf_find)(name, kind, &btf) : -ENOENT;

	if (id < 0)
		return VK_KERNEL_WAS_TRIED ? 0 : -EPROTO;
	t = btf_type_by_id(btf, id);
	if (kind == BTF_KIND_FUNC)
		t = btf_type_by_id(btf, t->type);
	same = vk_parts_are(btf, t, letters);
	static_call(vk_btf_put)(btf);
	return same ? 0 : -EPROTO;
}

int vk_check_params(const char *function, const char *params)
{
	return params ? vk_check(function, BTF_KIND_FUNC, params) : 0;
}

int vk_check_members(const char *structure, const char *members)
{
	return vk_check(structure, BTF_KIND_STRUCT, members);
}
