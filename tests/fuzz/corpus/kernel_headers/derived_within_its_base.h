struct A {
struct B : A {
};
};
